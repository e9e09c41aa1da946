/** Who is let in, and how far: host, origin, link, cookie, roles, limits. Each sentence is a line of what the console promises. */
import { mkdtempSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { consoleWorld, pageHeaders, signedIn, tokenIn } from '../../test/console/gateway-console.ts'
import { inMemory, playgroundWorld, shop } from '../../test/console/playground-console.ts'
import { upstreamOf } from '../../test/gateway/world.ts'
import { memoryStore } from '../stores/memory.ts'
import { fakeClock } from '../testing/clock.ts'
import { createApprovalQueue } from './approvals.ts'
import type { LogLine } from './contract/log.ts'
import type { Role } from './contract/session.ts'
import { runningConsoles, storeLink } from './links.ts'
import { Playground } from './playground/playground.ts'
import type { Route } from './route.ts'
import { routesOf } from './routes.ts'
import type { RunningConsole } from './serve.ts'
import { playgroundSource } from './sources/playground.ts'

type Headers = Readonly<Record<string, string>>

/** A request exactly as given: `fetch` would correct host and path. */
function raw({ port }: RunningConsole, method: string, path: string, headers: Headers, body = '') {
  return new Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; text: string }>((resolve, reject) => {
    const length = body === '' ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const sent = request({ host: '127.0.0.1', port, method, path, headers: { host: `127.0.0.1:${port}`, ...length, ...headers } })
    sent.on('error', reject)
    sent.on('response', answer => {
      let text = ''
      answer.setEncoding('utf8').on('data', part => {
        text += part
      })
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }))
    })
    sent.end(body)
  })
}

const signIn = (running: RunningConsole, token: string, headers: Headers = {}) =>
  raw(running, 'POST', '/api/1/session', { ...pageHeaders(running), ...headers }, JSON.stringify({ token }))

describe('of twenty hostile requests with a stolen session, none is served', () => {
  const own = (port: number) => `127.0.0.1:${port}`
  it.each<[string, string, string, (port: number) => Headers]>([
    ['a name that was rebound', 'GET', '/api/1/self', () => ({ host: 'evil.example' })],
    ['a name that was rebound, with our port', 'GET', '/api/1/self', port => ({ host: `evil.example:${port}` })],
    ['localhost, where views live', 'GET', '/api/1/self', port => ({ host: `localhost:${port}` })],
    ['another port', 'GET', '/api/1/self', port => ({ host: own(port + 1) })],
    ['no port', 'GET', '/api/1/self', () => ({ host: '127.0.0.1' })],
    ['an IPv6 name', 'GET', '/api/1/self', port => ({ host: `[::1]:${port}` })],
    ['all interfaces', 'GET', '/api/1/self', port => ({ host: `0.0.0.0:${port}` })],
    ['a trailing dot', 'GET', '/', port => ({ host: `127.0.0.1.:${port}` })],
    ['a foreign origin', 'POST', '/api/1/audit/proof', () => ({ origin: 'https://evil.example' })],
    ['an origin of another port', 'POST', '/api/1/audit/proof', port => ({ origin: `http://${own(port + 1)}` })],
    ['an origin of another name', 'POST', '/api/1/audit/proof', port => ({ origin: `http://localhost:${port}` })],
    ['an origin of https', 'POST', '/api/1/audit/proof', port => ({ origin: `https://${own(port)}` })],
    ['the origin null of a sandbox', 'POST', '/api/1/audit/proof', () => ({ origin: 'null' })],
    ['a foreign origin that only reads', 'GET', '/api/1/self', () => ({ origin: 'https://evil.example' })],
    ['an image of another site', 'GET', '/api/1/self', () => ({ 'sec-fetch-site': 'cross-site' })],
    ['a page of another port', 'GET', '/api/1/self', () => ({ 'sec-fetch-site': 'same-site' })],
    ['a form', 'POST', '/api/1/audit/proof', () => ({ 'content-type': 'application/x-www-form-urlencoded' })],
    ['plain text', 'POST', '/api/1/audit/proof', () => ({ 'content-type': 'text/plain' })],
    ['no header of ours', 'POST', '/api/1/audit/proof', () => ({ 'x-vivarium': '0' })],
    ['a preflight', 'OPTIONS', '/api/1/audit/proof', () => ({ 'access-control-request-method': 'POST' })],
  ])('%s', async (_, method, path, change) => {
    const { page, console: running, gateway } = await consoleWorld({ servers: { bank: upstreamOf() } })
    const { cookie } = await page()
    const headers = { cookie, ...(method === 'GET' ? {} : pageHeaders(running)), ...change(running.port) }
    const answer = await raw(running, method, path, headers, method === 'POST' ? '{}' : '')
    expect([403, 405, 415]).toContain(answer.status)
    expect(answer.text).not.toContain('bank')
    expect(Object.keys(answer.headers).filter(name => name.startsWith('access-control'))).toEqual([])
    expect((await gateway.audit.search({ text: 'proof' })).items).toEqual([])
  })
})

describe('of twenty hostile paths, none is served', () => {
  it.each([
    '/../package.json',
    '/assets/../../package.json',
    '/%2e%2e/%2e%2e/etc/passwd',
    '/.%2e/etc/passwd.js',
    '/assets/..%5c..%5cpackage.json',
    '/assets\\..\\package.json',
    '//evil.example/',
    'http://evil.example/',
    '/assets/.digest',
    '/.digest.js',
    '/index.html.gz',
    '/package.json',
    '/assets/%00.js',
    '/api/2/self',
    '/api/1',
    '/api/1/self/',
    '/api/1/../1/self',
    '/api/1/servers/%E0%A4%A',
    '/api/1/frames',
    `/${'a'.repeat(5_000)}`,
  ])('%s', async path => {
    const { page, console: running } = await consoleWorld({})
    const { status, text } = await raw(running, 'GET', path, { cookie: (await page()).cookie })
    expect(status).toBe(404)
    expect(JSON.parse(text)).toMatchObject({ code: 'NOT_FOUND' })
  })
})

describe('the link', () => {
  it('works once: of two that bring it at the same time one is let in', async () => {
    const { console: running } = await consoleWorld({})
    const token = tokenIn(running.link)
    const answers = await Promise.all([signIn(running, token), signIn(running, token)])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401])
    expect((await signIn(running, token)).status).toBe(401)
  })

  it('holds its token in the fragment, and its session in a cookie that scripts do not see', async () => {
    const { console: running } = await consoleWorld({})
    expect(running.link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#k=[\w-]{43}$/)
    const { headers, text } = await signIn(running, tokenIn(running.link))
    const [cookie = ''] = headers['set-cookie'] as string[]
    expect(cookie).toMatch(new RegExp(`^vivarium-${running.port}=[\\w-]{43}; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200$`))
    expect(text).not.toContain(cookie.split(/[=;]/)[1])
  })

  it('expires after ten minutes, and a session after twelve hours without use', async () => {
    const clock = fakeClock()
    const { console: running, page } = await consoleWorld({}, { clock })
    const me = await page()
    clock.advance(600_001)
    expect((await signIn(running, tokenIn(running.link))).status).toBe(401)
    clock.advance(11 * 3_600_000)
    expect((await me.get('/session')).status).toBe(200)
    clock.advance(11 * 3_600_000)
    expect((await me.get('/session')).status).toBe(200)
    clock.advance(12 * 3_600_000 + 1)
    expect(await me.get('/session')).toMatchObject({ status: 401, body: { code: 'SESSION_REQUIRED' } })
  })

  it('is closed to everybody for a minute after ten wrong tokens, and each is written down', async () => {
    const clock = fakeClock()
    const { console: running, gateway } = await consoleWorld({}, { clock })
    for (let n = 0; n < 10; n++) expect((await signIn(running, `wrong-${n}`)).status).toBe(401)
    expect((await signIn(running, tokenIn(running.link))).status).toBe(429)
    expect((await gateway.audit.search({ code: 'TOKEN_REFUSED' })).items).toHaveLength(10)
    clock.advance(60_001)
    expect((await signIn(running, tokenIn(running.link))).status).toBe(200)
  })

  it('of another origin does not count as wrong, so that no page closes the door', async () => {
    const { console: running } = await consoleWorld({})
    for (let n = 0; n < 20; n++) await signIn(running, 'wrong', { origin: 'https://evil.example' })
    expect((await signIn(running, tokenIn(running.link))).status).toBe(200)
  })

  it('may be left in the store by another process: for one console, once, with its name and roles', async () => {
    const store = memoryStore()
    const { console: running } = await consoleWorld({}, { store })
    await expect.poll(() => runningConsoles(store)).toMatchObject([{ url: running.url }])
    const [there] = await runningConsoles(store)
    if (there === undefined) throw new Error('no console')
    const elsewhere = await storeLink(store, { ...there, start: 'another' }, { by: 'eve', roles: ['approver'] })
    expect((await signIn(running, tokenIn(elsewhere))).status).toBe(401)
    const link = await storeLink(store, there, { by: 'bob', roles: ['viewer'] })
    expect(JSON.stringify(await store.scan(''))).not.toContain(tokenIn(link))
    const answers = await Promise.all([signIn(running, tokenIn(link)), signIn(running, tokenIn(link))])
    const [yes] = answers.filter(({ status }) => status === 200)
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401])
    expect(JSON.parse(yes?.text ?? '')).toMatchObject({ by: 'bob', roles: ['viewer'] })
    await running.close()
    expect(await runningConsoles(store)).toEqual([])
  })
})

describe('a session', () => {
  it('is ended by its page, and by the 33rd that is opened the one that was not used longest', async () => {
    const clock = fakeClock()
    const { page } = await consoleWorld({}, { clock })
    const [first, second] = [await page(), await page()]
    expect((await first.remove('/session')).status).toBe(204)
    expect((await first.get('/self')).status).toBe(401)
    for (const [others, status] of [
      [31, 200],
      [31, 200],
      [32, 401],
    ] as const) {
      for (let n = 0; n < others; n++) await page()
      expect((await second.get('/self')).status).toBe(status)
      clock.advance(1_000)
    }
  })

  it('may be shown as a bearer by a program, which sends no origin, and not by another cookie', async () => {
    const { page, console: running } = await consoleWorld({})
    const token = (await page()).cookie.split('=')[1] ?? ''
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'x-vivarium': '1' }
    expect((await raw(running, 'POST', '/api/1/audit/proof', headers, '{}')).status).toBe(202)
    const evil = { ...headers, origin: 'https://evil.example' }
    expect((await raw(running, 'POST', '/api/1/audit/proof', evil, '{}')).status).toBe(403)
    expect((await raw(running, 'GET', '/api/1/self', { cookie: `vivarium-1=${token}` })).status).toBe(401)
  })
})

/** Every route of the table, as a request that fits its form. */
const examples: Readonly<Record<string, unknown>> = {
  'POST /approvals/:id': { yes: false, digest: 'sha256:none' },
}

/** Asks for each route with each role, and gives the changes that were refused. */
async function walk(
  running: RunningConsole,
  page: (who?: {
    readonly by: string
    readonly roles: readonly Role[]
  }) => Promise<{ readonly cookie: string; get(path: string): Promise<{ readonly body: object }> }>,
  routes: readonly (readonly [string, Route])[],
): Promise<string[]> {
  const { resources } = (await (await page()).get('/self')).body as { resources: readonly string[] }
  expect(new Set(routes.map(([key]) => key.split(' ')[1])).add('/events')).toEqual(new Set(resources))
  const refused: string[] = []
  const roles = ['viewer', 'operator', 'approver'] as const
  const known = new Map(await Promise.all(roles.map(async role => [role, await page({ by: role, roles: [role] })] as const)))
  for (const [key, { role }] of routes) {
    const [method = '', pattern = ''] = key.split(' ')
    const path = Object.entries(inPaths).reduce((text, [name, value]) => text.replace(name, value), pattern)
    const headers = method === 'GET' ? {} : pageHeaders(running)
    const body = method === 'GET' ? '' : JSON.stringify(examples[key] ?? {})
    expect([key, (await raw(running, method, `/api/1${path}`, headers, body)).status]).toEqual([key, 401])
    for (const mine of roles) {
      // Signing in is a change of which there may be fifty in a second; only a session that the route ends is not used again.
      const me = key === 'DELETE /session' ? await page({ by: mine, roles: [mine] }) : known.get(mine)
      const { status } = await raw(running, method, `/api/1${path}`, { ...headers, cookie: me?.cookie ?? '' }, body)
      const isAllowed = role === 'any' || role === mine
      expect([key, mine, status === 403]).toEqual([key, mine, !isAllowed])
      if (!isAllowed && method !== 'GET') refused.push(`${mine} console ${key}`)
    }
  }
  return refused
}

/** What stands for the names in paths. */
const inPaths = { ':name': 'bank', ':id': 'none', ':n': '1', ':revision': 'none' }

describe('every route', () => {
  it('is for its role alone, and for nobody without a session', async () => {
    const { page, console: running, gateway } = await consoleWorld({ servers: { bank: upstreamOf() } })
    const source = { observed: { traffic: () => [] }, audit: {}, figures: { clients: () => [] } }
    const parts = { source, approvals: {}, jobs: {} } as unknown as Parameters<typeof routesOf>[0]
    const refused = await walk(running, page, [...routesOf(parts)])
    // Entries are written a moment after the answer.
    const written = async () => {
      const { items } = await gateway.audit.search({ code: 'ROLE_REQUIRED', limit: 1_000 })
      return items.map(({ more }) => `${more?.['by']} ${more?.['method']}`).sort()
    }
    await expect.poll(written).toEqual(refused.sort())
  })

  it('of a playground too, and refusals are in its log', async () => {
    const server = shop()
    const wanted = { server, judge: { acceptor: server.acceptor }, tapes: mkdtempSync(join(tmpdir(), 'vivarium-tapes-')) }
    const { page, console: running } = await playgroundWorld(wanted, { payloads: 'viewer' })
    const playground = new Playground({ ...wanted, target: inMemory(server) }, createApprovalQueue())
    onTestFinished(() => playground.close())
    const source = playgroundSource(playground, [])
    const parts = { source, approvals: {}, jobs: {} } as unknown as Parameters<typeof routesOf>[0]
    const refused = await walk(running, page, [...routesOf(parts)])
    const { items } = (await (await page()).get('/log?event=console&text=ROLE_REQUIRED&limit=1000')).body as { items: LogLine[] }
    const told = items.map(({ text }) => text.split(' ').slice(0, 3).join(' '))
    expect(told.sort()).toEqual(refused.map(each => each.replace('console ', '')).sort())
  })

  it('answers with the headers that forbid what the page does not need', async () => {
    const { page, console: running } = await consoleWorld({})
    const { cookie } = await page()
    for (const path of ['/', '/api/1/self', '/api/1/none', '/assets/none.js']) {
      const { headers } = await raw(running, 'GET', path, { cookie })
      expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' })
      expect(headers['content-security-policy']).toContain("default-src 'none'; script-src 'self';")
      expect(headers['content-security-policy']).toContain("frame-ancestors 'none'; require-trusted-types-for 'script'")
    }
  })

  it('is redirected from localhost for the page alone', async () => {
    const { console: running } = await consoleWorld({})
    const host = `localhost:${running.port}`
    expect(await raw(running, 'GET', '/', { host })).toMatchObject({ status: 302, headers: { location: running.url } })
    expect((await raw(running, 'GET', '/overview', { host })).status).toBe(403)
  })

  it('takes 1 MiB and 50 changes in a second, and goes on afterwards', async () => {
    const clock = fakeClock()
    const { page, console: running } = await consoleWorld({ servers: { bank: upstreamOf() } }, { clock })
    const [me, other] = [await page(), await page({ by: 'bob' })]
    const large = { yes: true, digest: 'x', content: { text: 'x'.repeat(1024 * 1024) } }
    expect(await me.post('/approvals/none', large)).toMatchObject({ status: 413, body: { code: 'PAYLOAD_TOO_LARGE' } })
    const statuses: number[] = []
    for (let n = 0; n < 60; n++) statuses.push((await me.post('/servers/bank/retry')).status)
    expect(statuses.filter(status => status === 204).length).toBe(49)
    expect((await other.post('/servers/bank/retry')).status).toBe(204)
    clock.advance(1_000)
    expect((await me.post('/servers/bank/retry')).status).toBe(204)
    expect((await raw(running, 'GET', '/api/1/self', { cookie: me.cookie })).status).toBe(200)
  })

  it('listens on loopback alone', async () => {
    const { console: running } = await consoleWorld({})
    const socket = connect({ host: '127.0.0.2', port: running.port })
    onTestFinished(() => void socket.destroy())
    const refused = await new Promise(resolve => {
      socket.on('error', () => resolve(true))
      socket.on('connect', () => resolve(false))
    })
    expect(refused).toBe(true)
  })
})

describe('secrets', () => {
  it('of servers, tokens and links stand in no answer', async () => {
    const secret = 'sk-THISISASECRETVALUE1234567890'
    const {
      page,
      console: running,
      observe,
      client,
      gateway,
    } = await consoleWorld({
      servers: { bank: upstreamOf() },
      audit: { arguments: true },
      auth: { tokens: { ci: 'a-token-of-a-client-1234' } },
      clients: { ci: {}, local: { principals: '*' } },
    })
    observe.options.onStderr?.('bank', `password=${secret}`)
    observe.options.onLog?.({ level: 'warn', event: 'broken', fields: { said: `authorization: Bearer ${secret}` } })
    await client.callTool('pay', { password: secret, to: 'alice' }).catch(() => undefined)
    await gateway.audit.search()
    const me = await page()
    const token = tokenIn(running.newLink())
    const paths = [
      '/self',
      '/session',
      '/servers',
      '/servers/bank',
      '/approvals',
      '/audit',
      '/log',
      '/clients',
      '/budgets',
      '/traffic',
    ]
    const all = (await Promise.all(paths.map(path => me.get(path)))).map(({ body }) => JSON.stringify(body)).join('\n')
    expect(all).toContain('password=')
    for (const hidden of [secret, token, 'a-token-of-a-client-1234', me.cookie.split('=')[1] ?? ''])
      expect(all).not.toContain(hidden)
    expect((await signedIn(running, `${running.url}#k=${token}`)).cookie).not.toBe(me.cookie)
  })
})
