/**
 * Finds a server that can do what the connected one cannot: the tracker recommends one by name, the team's registry knows its
 * address, and the host decides. Checks that everything is as it should be.
 */
import assert from 'node:assert/strict'
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect, createFinder } from 'vivarium/client'
import { createServer } from 'vivarium/server'
import { registry } from './registry.ts'

const design = createServer({ name: 'design', version: '1.1.0' })
design.tool('draw_mockup', { description: 'Draws a mockup' }, () => '+-----+\n| Buy |\n+-----+')
const { url } = await design.listen()

const tracker = createServer({
  name: 'tracker',
  version: '1.0.0',
  manifest: true,
  recommendations: [
    { capability: 'design_mockup', server: 'com.example/design', confidence: 'high' },
    { capability: 'wiki', server: 'com.example/wiki' },
  ],
})
const listening = await tracker.listen()

const described = [
  { name: 'com.example/design', description: 'Draws a mockup of a page', version: '1.0.0' },
  {
    name: 'com.example/design',
    description: 'Draws a mockup of a page',
    version: '1.1.0',
    remotes: [{ type: 'streamable-http', url }],
  },
]
const http = createHttpServer(registry(() => described))
await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve))
const team = `http://127.0.0.1:${(http.address() as AddressInfo).port}`

const mcp = await connect(listening.url)
const finder = createFinder({ servers: [mcp], registries: [team], trusted: ['tracker', team], outbound: { loopback: true } })
const { candidates, faults } = await finder.find('design mockup')
assert.deepEqual(faults, [])
const [best] = candidates
assert.equal(best?.name, 'com.example/design')
console.log(`${best.source.name} recommends ${best.name} ${best.version}, trusted: ${best.trusted}`)

// So far nothing was connected. This is the host's decision:
const [remote] = best.remotes
assert.equal(remote?.url, url)
const helper = await connect(remote.url)
assert.deepEqual(finder.check(best, helper).warnings, [])
console.log((await helper.callTool('draw_mockup')).text)

await Promise.all([helper.close(), mcp.close()])
await Promise.all([design.close(), tracker.close(), new Promise(resolve => http.close(resolve))])
