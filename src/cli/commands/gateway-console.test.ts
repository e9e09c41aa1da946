/** The web console of `vivarium gateway`: its link, a further one from a second terminal, and an answer that the terminal learns of. */
import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { trial } from '../../../test/cli/trial.ts'
import { connect } from '../../client/index.ts'

const server = `
import { createServer, jsonSchema } from 'vivarium/server'
const server = createServer({ name: 'bank', version: '1.0.0' })
server.tool('pay', { input: jsonSchema({ type: 'object' }) }, ({ to }) => 'paid ' + to)
await server.stdio()
`
const file = `
store: "sqlite:a.db"
console: { port: 0 }
servers: { bank: { command: ${JSON.stringify(process.execPath)}, args: [bank.mjs] } }
rules: [{ name: money, tool: pay, do: ask, by: operator, wait: 60s }]
`

/** Signs in by a link, and calls the API. */
async function signIn(link: string) {
  const { origin, hash } = new URL(link)
  const headers = { origin, 'content-type': 'application/json', 'x-vivarium': '1' }
  const body = JSON.stringify({ token: hash.slice('#k='.length) })
  const opened = await fetch(`${origin}/api/1/session`, { method: 'POST', headers, body })
  const cookie = opened.headers.get('set-cookie')?.split(';')[0] ?? ''
  const send = async (method: string, path: string, given?: unknown) => {
    const sent = given === undefined ? {} : { body: JSON.stringify(given) }
    const answer = await fetch(`${origin}/api/1${path}`, { method, headers: { ...headers, cookie }, ...sent })
    return (await answer.json()) as Record<string, unknown>
  }
  return { status: opened.status, send }
}

test('a link from the gateway and one from a second terminal sign in; a yes in the page is told in the terminal', {
  timeout: 120_000,
}, async () => {
  const it = await trial({ 'bank.mjs': server, 'gateway.yaml': file })
  const { until } = it.start(['gateway', 'gateway.yaml', '--port', '0', '--format', 'json'])
  const [, url = ''] = await until(/"url":"([^"]+)"/)
  const [, link = ''] = await until(/console {2}(http:\/\/127\.0\.0\.1:\d+\/#k=[\w-]{43}) {2}\(once, 10 min\)/, 'err')
  const ann = await signIn(link)
  expect(ann.status).toBe(200)

  const client = await connect(url)
  onTestFinished(() => client.close())
  const paid = client.callTool('pay', { to: 'eve' })
  await until(/waits for approval/, 'err')
  const { items } = (await ann.send('GET', '/approvals')) as { items: { id: string; digest: string }[] }
  const [{ id = '', digest = '' } = {}] = items

  const printed = await it.run(['gateway', 'console', 'gateway.yaml', '--role', 'approver', '--as', 'bob', '--format', 'json'])
  expect([printed.code, printed.err]).toEqual([0, ''])
  const bob = await signIn((JSON.parse(printed.out) as { link: string }).link)
  expect(await bob.send('GET', '/session')).toMatchObject({ by: 'bob', roles: ['approver'] })
  expect(await bob.send('POST', `/approvals/${encodeURIComponent(id)}`, { yes: true, digest })).toMatchObject({ by: 'bob' })
  expect((await paid).text).toBe('paid eve')
  await until(/Approved by bob: /, 'err')

  const audit = await it.run(['gateway', 'audit', 'gateway.yaml', '--format', 'json'])
  expect(audit.out).toContain('"by":"bob"')
  expect(audit.out).not.toContain(new URL(link).hash.slice('#k='.length))
})

test('a role that does not exist, a port in use and settings for later versions are refused with what to do', {
  timeout: 120_000,
}, async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void taken.close())
  await new Promise(resolve => taken.once('listening', resolve))
  const { port } = taken.address() as { port: number }
  const it = await trial({
    'gateway.yaml': file,
    'taken.yaml': file.replace('port: 0', `port: ${port}`),
    'later.yaml':
      'console: { auth: { issuer: "https://id.example" }, fourEyes: true, colour: red, payloads: all }\nservers: {}\n',
  })
  expect((await it.run(['gateway', 'console', 'gateway.yaml', '--role', 'king'])).err).toContain(
    'There are viewer, operator, approver',
  )
  const later = await it.run(['gateway', 'later.yaml', '--check'])
  for (const said of [
    'console.auth is not supported yet',
    'console has no member "colour"',
    'console.payloads is not valid',
    'console.fourEyes needs auth',
  ])
    expect(later.out + later.err).toContain(said)
  const refused = await it.run(['gateway', 'taken.yaml', '--port', '0'])
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining(`The port ${port} of the console is in use`)])
})

test('where the usual port is in use another one is taken and told, and over SSH the tunnel to it', {
  timeout: 120_000,
}, async () => {
  const taken = createServer()
  // Where it is in use already, as by a console of this machine, that is as good.
  await new Promise<unknown>(resolve => taken.on('error', resolve).listen(7425, '127.0.0.1', () => resolve(undefined)))
  onTestFinished(() => void taken.close())
  const it = await trial({ 'bank.mjs': server, 'gateway.yaml': file.replace('{ port: 0 }', 'true') })
  const { until, err } = it.start(['gateway', 'gateway.yaml', '--port', '0'], {
    SSH_CONNECTION: '192.0.2.7 52111 192.0.2.9 22',
  })
  const [, port = ''] = await until(/console {2}http:\/\/127\.0\.0\.1:(\d+)\//, 'err')
  await until(/Port 7425 is in use, so the console uses \d+/, 'err')
  await until(/ssh -L /, 'err')
  expect(port).not.toBe('7425')
  expect(err()).toContain(`so the console uses ${port}\n`)
  expect(err()).toContain(`ssh -L ${port}:127.0.0.1:${port} 192.0.2.9\n`)
})
