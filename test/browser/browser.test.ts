/** `vivarium/client` in a real browser, against our server on another origin. Where no browser can run it is skipped. */
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RunningBrowser, startBrowser, type Tab } from '../../scripts/browser/devtools.ts'
import { findBrowser } from '../../scripts/browser/find.ts'
import { createServer, type Server } from '../../src/server/index.ts'
import { withTools } from '../runtimes/server.ts'

const chromium = findBrowser()
const note = chromium === undefined ? ' (skipped: no browser can run on this machine; CHROMIUM may name one)' : ''

describe.skipIf(chromium === undefined)(`a page of another origin${note}`, () => {
  const open: { close(): Promise<unknown> }[] = []
  let page: Tab
  let origin: string
  let url: string
  let deaf: string

  beforeAll(async () => {
    const script = await bundlePage()
    const html = '<!doctype html><script type="module" src="/page.js"></script>'
    const site = createHttpServer((request, response) => {
      const isScript = request.url === '/page.js'
      // The strictest of policies: no code is made from text.
      const policy = "default-src 'none'; script-src 'self'; connect-src *"
      const type = isScript ? 'text/javascript' : 'text/html'
      response.writeHead(200, { 'content-type': type, 'content-security-policy': policy }).end(isScript ? script : html)
    })
    await new Promise<void>(resolve => site.listen(0, '127.0.0.1', resolve))
    open.push({ close: async () => site.close() })
    origin = `http://localhost:${(site.address() as AddressInfo).port}`
    url = await listen({ origins: [origin] })
    deaf = await listen({})
    const browser: RunningBrowser = await startBrowser(chromium as NonNullable<typeof chromium>)
    open.push(browser)
    page = await browser.openTab()
    await page.open(origin)
  })
  afterAll(async () => {
    for (const each of open.reverse()) await each.close()
  })

  async function listen(options: Parameters<Server['listen']>[0]): Promise<string> {
    const listening = await withTools(createServer({ name: 'small', version: '1.0.0' })).listen({ wsPath: '/ws', ...options })
    open.push(listening)
    return listening.url
  }

  const call = (name: string, ...words: unknown[]): Promise<unknown> =>
    page.evaluate(`${name}(${words.map(word => JSON.stringify(word)).join(', ')})`)

  const said = ['Hello, Ada', 1, 2, 3, 'three', 'Wipe everything?', 'Why?', 'Wiped: spring']

  for (const revision of ['2025-06-18', '2025-11-25', '2026-07-28']) {
    it(`${revision}: calls, progress and questions over HTTP`, async () => {
      expect(await call('speak', url, revision)).toEqual(said)
    })

    it(`${revision}: the same over a WebSocket`, async () => {
      expect(await call('speak', url.replace('http', 'ws').replace('/mcp', '/ws'), revision)).toEqual(said)
    })
  }

  it('nothing of Node is there, nor brought along', async () => {
    expect(await call('nodes')).toEqual([])
  })

  it('a program cannot be started, and it is said why', async () => {
    expect(await call('failure', { command: 'node' })).toMatch(/needs Node, Bun or Deno.*http\(s\):\/\//)
  })

  it('headers cannot go with a WebSocket, and it is said what can be done', async () => {
    const target = url.replace('http', 'ws').replace('/mcp', '/ws')
    expect(await call('failure', target, { authorization: 'Bearer x' })).toMatch(/cannot send headers.*http\(s\):\/\//)
  })

  it('an origin that the server does not list is refused by CORS, and both sides say which option allows it', async () => {
    expect(await call('failure', deaf)).toContain(`(CORS): add ${origin} to its option origins`)
    const preflight = { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'POST' } }
    const answer = await fetch(deaf, preflight)
    expect(answer.status).toBe(403)
    expect(await answer.text()).toContain(`origins: ['${origin}']`)
  })
})

/** As a web project does it: by the name of the package and its `browser` condition, no externals. */
async function bundlePage(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, 'page.ts')],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    tsconfigRaw: {},
    logLevel: 'silent',
  })
  return outputFiles[0]?.text ?? ''
}
