/** What runs in the page: a client of the built package, bundled for browsers. The test calls these functions by name. */
import { type Client, connect, type RevisionId } from 'vivarium/client'

/** What a revision gave, step by step. */
async function speak(target: string, revision: RevisionId): Promise<unknown[]> {
  const heard: unknown[] = []
  const mcp: Client = await connect(target, {
    revisions: [revision],
    onElicit: ({ message }) => {
      heard.push(message)
      return { action: 'accept', content: message === 'Why?' ? { reason: 'spring' } : { confirm: true } }
    },
  })
  heard.push((await mcp.callTool('greet', { name: 'Ada' })).text)
  heard.push((await mcp.callTool('count', {}, { onProgress: ({ progress }) => heard.push(progress) })).text)
  heard.push((await mcp.callTool('wipe')).text)
  await mcp.close()
  return heard
}

/** Why a connection could not be had. */
async function failure(target: string | { command: string }, headers?: Record<string, string>): Promise<string> {
  try {
    await (await connect(target, headers === undefined ? {} : { headers })).close()
    return 'connected'
  } catch (error) {
    return String(error)
  }
}

/** What a page lacks, and bundles for it must not bring along. */
const nodes = (): string[] => ['Buffer', 'process', 'setImmediate', 'global'].filter(name => name in globalThis)

Object.assign(globalThis, { speak, failure, nodes })
