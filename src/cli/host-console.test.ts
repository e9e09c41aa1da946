/** Terminal and page before one host: each question is asked in both, and the first answer counts. */
import { PassThrough } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { signedIn } from '../../test/console/gateway-console.ts'
import { call, shopServer, target } from '../../test/console/host-console.ts'
import type { RunningConsole } from '../console/index.ts'
import { createHost } from '../host/create.ts'
import { type ScriptStep, scripted } from '../host/models/scripted.ts'
import { HostConsole } from './host-console.ts'
import { runTerminal } from './terminal/terminal.ts'

const careful = { rules: [{ name: 'careful', do: 'ask', when: { kind: 'tool' } }] } as const

/** A terminal with keys, and a page that is signed in by the link that the terminal prints. */
async function both(script: readonly ScriptStep[]) {
  const { server, made } = shopServer()
  const input = new PassThrough()
  let out = ''
  const write = (text: string) => {
    out += text
  }
  const page = new HostConsole({
    ...{ io: { env: {}, interactive: true }, name: 'test', conversation: 'main', examples: [], opens: false },
    failed: error => {
      throw error
    },
  })
  const model = scripted(script)
  const ended = runTerminal({
    ...{ input, output: { isTTY: false, columns: 100, write }, interactive: true, env: { NO_COLOR: '1' } },
    ...{ model: model.info, place: 'memory:', page: () => page.page },
    open: async ({ confirm: _, ...side }) => {
      const servers = { shop: { target: target(server), live: { enable: ['*'] } } }
      const host = await createHost({ ...page.observe(side, side), servers, model, policy: careful })
      await page.open(host)
      return host
    },
  }).finally(() => page.close())
  onTestFinished(async () => {
    input.end()
    await ended
    await server.close()
  })
  const sees = (text: string | RegExp) => expect.poll(() => out, { interval: 5, timeout: 10_000 }).toMatch(text)
  await sees(/Ctrl-D ends/)
  await sees(/console {2}http/)
  const link = /http:\/\/127\.0\.0\.1:(\d+)\/#k=[\w-]+/.exec(out)
  const running = { url: `http://127.0.0.1:${link?.[1]}/`, port: Number(link?.[1]) } as RunningConsole
  const me = await signedIn(running, link?.[0] ?? '')
  return { me, made, sees, type: (keys: string) => void input.write(keys), output: () => out }
}

test('a question of the terminal is answered in the page, and the terminal says who did it', async () => {
  const { me, made, sees, type, output } = await both([call('create', { text: 'tea' }), 'Made.'])
  type('Make tea\r')
  await sees(/\[N\]o ›/)
  const { id, digest, tool } = await me.waiting()
  expect(tool).toBe('create')
  expect((await me.post(`/approvals/${id}`, { yes: true, digest })).status).toBe(200)
  await sees(/Approved by .+, in the console/)
  await sees(/│ Made\./)
  expect(made).toEqual(['tea'])
  expect(output()).not.toContain('Refused')
})

test('a question is answered in the terminal, and the page says who did it', async () => {
  const { me, made, sees, type } = await both([call('create', { text: 'tea' }), 'Made.'])
  expect((await me.post('/conversations/main/turns', { text: 'Make tea' })).status).toBe(202)
  await sees(/in the console › Make tea/)
  const { id, digest } = await me.waiting()
  await sees(/\[N\]o ›/)
  type('y\r')
  await sees(/│ Made\./)
  expect(made).toEqual(['tea'])
  expect((await me.get(`/approvals/${id}`)).body).toMatchObject({
    answered: { yes: true, by: expect.stringContaining('(terminal)') },
  })
  expect(await me.post(`/approvals/${id}`, { yes: false, digest })).toMatchObject({
    status: 409,
    body: { code: 'ALREADY_ANSWERED' },
  })
})

test('a no of the page is a no in the terminal too, where it can be allowed later', async () => {
  const { me, made, sees, type } = await both([call('create', { text: 'tea' }), 'Not made.'])
  type('Make tea\r')
  await sees(/\[N\]o ›/)
  const { id, digest } = await me.waiting()
  expect((await me.post(`/approvals/${id}`, { yes: false, digest, reason: 'not now' })).status).toBe(200)
  await sees(/Refused by .+, in the console/)
  await sees(/│ Not made\./)
  expect(made).toEqual([])
  type('/allow\r')
  await sees(/Approved for the next time/)
})

test('a form is filled in the page while the terminal asks for it, and the terminal gives a new link', async () => {
  const { me, sees, type, output } = await both([call('ask'), 'Good.'])
  type('Ask me\r')
  const asked = await me.waiting()
  await me.post(`/approvals/${asked.id}`, { yes: true, digest: asked.digest })
  await sees(/count/)
  const form = await me.waiting()
  expect(form.kind).toBe('form')
  expect((await me.post(`/approvals/${form.id}`, { yes: true, digest: form.digest, content: { count: 3 } })).status).toBe(200)
  await sees(/│ Good\./)
  const { body } = await me.get('/conversations/main/turns/0')
  expect(body).toMatchObject({ calls: [{ result: expect.stringContaining('accept {"count":3}') }] })
  type('/console\r')
  await expect.poll(() => output().match(/#k=/g)?.length).toBe(2)
})
