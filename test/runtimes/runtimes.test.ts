/** `server.fetch` of the built package on real runtimes. They are heavy: `npm run runtimes` installs them beside this file. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe } from 'vitest'
import { bun, bundleWorker, deno, type Running, type Runtime, workerd } from './runtimes.ts'
import { servesEveryRevision } from './suite.ts'

describe('the bundle for Workers, on Node', () => {
  let folder: string
  let worker: { fetch(request: Request, bindings: object): Promise<Response> }
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'worker-'))
    await bundleWorker(join(folder, 'worker.mjs'))
    worker = (await import(pathToFileURL(join(folder, 'worker.mjs')).href)).default
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))
  const fetch: typeof globalThis.fetch = (input, init) => worker.fetch(new Request(input, init), {})
  servesEveryRevision({ url: () => 'http://127.0.0.1/mcp', fetch, meets: true })
})

function on(runtime: Runtime, path: string, meets: boolean, what = ''): void {
  const { binary } = runtime
  const note = binary === undefined ? ' (skipped: not installed, see npm run runtimes)' : ''
  describe.skipIf(binary === undefined)(`${runtime.name}${what}${note}`, () => {
    let running: Running | undefined
    beforeAll(async () => {
      running = await runtime.start(binary as string)
    })
    afterAll(() => running?.stop())
    servesEveryRevision({ url: () => `${running?.origin}${path}`, meets })
  })
}

on(bun, '/mcp', true)
on(deno, '/mcp', true)
for (const flags of [[], ['nodejs_compat']]) {
  // There each request is alone: no answer reaches the call of another request, and nothing goes on after its response.
  on(workerd(flags), '/mcp', false, ', in a Worker')
  on(workerd(flags), '/object/mcp', true, ', in a Durable Object')
}
