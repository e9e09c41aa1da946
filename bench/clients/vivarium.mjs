/** Ours as a client, from the built package, held to the revision of the row. */
import { connect } from 'vivarium/client'
import { floorCommand, serveRounds } from './rounds.mjs'

await serveRounds(async ({ carrier, revision, url }) => {
  const mcp = await connect(carrier === 'http' ? url : floorCommand, { revisions: [revision] })
  return {
    call: async text => (await mcp.callTool('echo', { text })).content[0].text,
    close: () => mcp.close(),
  }
})
