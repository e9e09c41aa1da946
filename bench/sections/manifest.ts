/** What the manifest of 500 tools costs in this process: written anew after each change of the tools, from its kept bytes, and to whoever has it. */
import type { Options } from '../options.ts'
import { failure, type ManifestRow } from '../results.ts'
import { median } from '../stats.ts'

const TOOLS = 500

export async function measureManifest(options: Options, row: (row: ManifestRow) => void): Promise<void> {
  for (const way of ['anew', 'kept bytes', 'not modified'] as const) {
    const cell = await measure(options, way).catch(failure)
    row({ way, cells: { manifest: cell } })
  }
}

async function measure(options: Options, way: ManifestRow['way']) {
  const { ask, change, revision, close } = await open()
  const params = way === 'not modified' ? { if_revision: revision } : {}
  const rounds: { cpuMicros: number; bytes: number }[] = []
  try {
    for (let round = 0; round < options.timing.rounds + 1; round++) {
      const until = performance.now() + options.timing.roundMs
      const began = process.cpuUsage()
      let answers = 0
      let bytes = 0
      while (performance.now() < until) {
        if (way === 'anew') change()
        bytes = (await ask(params)).length
        answers++
      }
      const { user, system } = process.cpuUsage(began)
      // The first one warms up.
      if (round > 0) rounds.push({ cpuMicros: (user + system) / answers, bytes })
    }
    return { cpuMicros: median(rounds.map(each => each.cpuMicros)), bytes: rounds[0]?.bytes ?? 0 }
  } finally {
    await close()
  }
}

/** A server in memory, and a peer that speaks to it in frames: no client's work is counted. */
async function open() {
  const { createServer, jsonSchema } = await import('vivarium/server')
  const { memoryPair } = await import('vivarium/testing')
  const server = createServer({ name: 'bench', version: '1.0.0', manifest: true, log: 'silent' })
  const input = jsonSchema({
    type: 'object',
    properties: { id: { type: 'string' }, limit: { type: 'integer' } },
    required: ['id'],
  })
  const facts = { description: 'Does one of five hundred things, like all the others', input, scopes: ['tickets:write'] }
  for (let tool = 0; tool < TOOLS; tool++) server.tool(`tool_${tool}`, { ...facts, idempotent: tool % 2 === 0 }, () => 'done')
  const [near, far] = memoryPair()
  server.acceptor.accept(far)
  let heard: (text: string) => void = () => {}
  await near.start({ frame: text => heard(text), fault: () => {}, closed: () => {} })
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': { extensions: { 'dev.vivarium/manifest': {} } },
  }
  const ask = (params: object): Promise<string> => {
    const { promise, resolve } = Promise.withResolvers<string>()
    heard = resolve
    void near.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'manifest/get', params: { ...params, _meta: meta } }))
    return promise
  }
  const { result } = JSON.parse(await ask({}))
  if (result?.manifest?.tools?.length !== TOOLS) throw new Error('The manifest has not all tools')
  const changing = server.tool('changing', { description: '' }, () => '')
  let changes = 0
  const revision: string = JSON.parse(await ask({})).result.revision
  return { ask, revision, change: () => changing.update({ description: `Change ${++changes}` }), close: () => server.close() }
}
