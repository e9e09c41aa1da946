/** The web console of `vivarium up` as a user has it: with the page alone, where no terminal is, and beside a terminal. */
import { expect, test } from 'vitest'
import { trial } from '../../../test/cli/trial.ts'
import { signedIn } from '../../../test/console/gateway-console.ts'
import type { RunningConsole } from '../../console/index.ts'

const server = `
import { createServer } from 'vivarium/server'
const server = createServer({ name: 'shop', version: '1.0.0' })
server.tool('bake', {}, () => 'three loaves')
await server.stdio()
`
const config = JSON.stringify({
  mcpServers: { shop: { command: process.execPath, args: ['shop.mjs'] } },
  host: { policy: { rules: [{ name: 'careful', do: 'ask', when: { kind: 'tool' } }] } },
})
const linkText = /console {2}(http:\/\/127\.0\.0\.1:(\d+)\/#k=[\w-]{43}) {2}\(once, 10 min\)/

async function signIn([, link = '', port = '']: RegExpExecArray) {
  return signedIn({ url: `http://127.0.0.1:${port}/`, port: Number(port) } as RunningConsole, link)
}

test('without a terminal the host runs with the page alone, asks there, and ends when it is told to', {
  timeout: 120_000,
}, async () => {
  const it = await trial({ 'shop.mjs': server, 'mcp.json': config })
  const { until, child, ended } = it.start(['up', '--web', '--config', 'mcp.json', '--trust'])
  const me = await signIn(await until(linkText, 'err'))
  expect((await me.get('/self')).body).toMatchObject({ kind: 'host', durable: true })
  expect((await me.get('/servers')).body).toMatchObject({ items: [{ name: 'shop', status: 'up', tools: 1 }] })
  expect((await me.post('/conversations/main/turns', { text: 'call bake' })).status).toBe(202)
  const { id, digest } = await me.waiting()
  await me.post(`/approvals/${id}`, { yes: true, digest })
  const turn = async () => (await me.get('/conversations/main/turns/0')).body
  await expect.poll(async () => (await turn())['status'], { timeout: 20_000 }).toBe('done')
  expect(JSON.stringify(await turn())).toContain('three loaves')
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
})

test('beside a terminal, both show the same conversation', { timeout: 120_000 }, async () => {
  const it = await trial({ 'shop.mjs': server, 'mcp.json': config })
  const { until, child, ended } = it.terminal(['up', '--web', '--no-open', '--config', 'mcp.json', '--trust'])
  const me = await signIn(await until(linkText))
  expect((await me.post('/conversations/main/turns', { text: 'Hello from the page' })).status).toBe(202)
  await until(/in the console ›\S* Hello from the page/)
  await until(/turn 1 ·/)
  child.stdin?.write('/quit\r')
  expect(await ended).toBe(0)
})
