/** All live examples as processes of one host, started from the config that they come with. */
import { createHmac } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { filesExtractors } from '../../examples/files/extract.ts'
import { createHost, type Host, type HostOptions, type ScriptedAnswer, scripted } from '../../src/host/index.ts'
import { temporaryFolder } from './live-host.ts'

const config = join(import.meta.dirname, '../../examples/host/mcp.json')

/** Says what it is told to say: a user's message names a tool and its arguments, or else is repeated. */
const parrot = () =>
  scripted(({ messages }): ScriptedAnswer => {
    const last = messages.at(-1)
    if (last?.role === 'tool') return { text: `Done: ${JSON.stringify(last.results.map(({ content }) => content))}` }
    const said = last?.content.flatMap(block => (block.type === 'text' ? [block.text] : [])).join('\n') ?? ''
    const [, name, args] = /^call (\w+) (\{.*\})$/s.exec(said) ?? []
    return name === undefined ? { text: `You said: ${said}` } : { calls: [{ name, arguments: JSON.parse(args ?? '{}') }] }
  })

function world() {
  const base = temporaryFolder()
  const [data, project] = [join(base, 'data'), join(base, 'project')]
  mkdirSync(data)
  mkdirSync(project)
  writeFileSync(join(project, 'a.txt'), 'one')
  const places = { VIVARIUM_NODE: process.execPath, VIVARIUM_DATA: data, VIVARIUM_FOLDER: project }
  const env = { ...places, WEBHOOK_GITHUB_SECRET: 'secret' }
  const open = async (options: Partial<HostOptions> = {}) => {
    const host = await createHost({
      config,
      env,
      store: `sqlite:${join(data, 'host.db')}`,
      model: parrot(),
      roots: [{ uri: pathToFileURL(project).href }],
      policy: { rules: [{ name: 'roots', do: 'allow', when: { kind: 'roots', server: 'files' } }] },
      extract: filesExtractors('files', project),
      hooks: { redactor: { after: { fail: 'closed' } } },
      ...options,
    })
    onTestFinished(() => host.close())
    return host
  }
  return { project, open }
}

async function say(host: Host, text: string) {
  const turn = await host.conversation('c1').send(text)
  await turn.done
  return turn
}

const call = (host: Host, tool: string, args: object) => say(host, `call ${tool} ${JSON.stringify(args)}`)

test('one host lives with all examples: what is said is learned and found, secrets stay inside, and turns are undone', async () => {
  const { project, open } = world()
  const asked: string[] = []
  let yes = true
  const host = await open({
    onApproval: ({ scopes: [scope] }) => {
      asked.push(`${scope?.payload?.['mode']} ${scope?.label}`)
      return { yes, for: '0s' }
    },
  })
  expect(host.servers.map(({ name, status, why }) => [name, status, why?.message])).toEqual(
    ['memory', 'notes', 'files', 'calendar', 'webhook', 'redactor'].map(name => [name, 'up', undefined]),
  )
  for (const { live } of host.servers) for (const [, { enabled }] of live?.featureSets ?? []) expect(enabled).toBe(true)

  await say(host, 'My favourite colour is green')
  await expect
    .poll(async () => (await say(host, 'Which colour do I like?')).prompt?.sections.map(({ from }) => from))
    .toContain('memory')
  expect((await say(host, 'Write to ada@example.com')).answer).toBe('You said: Write to [redacted-email]')

  await call(host, 'write_note', { name: 'plan', text: 'Sleep' })
  const extended = await call(host, 'extend_note', { name: 'plan', line: 'Wake' })
  expect(extended.answer).toContain('2 lines')
  expect(await extended.undo()).toMatchObject({ complete: true })
  expect((await call(host, 'extend_note', { name: 'plan', line: 'Eat' })).answer).toContain('2 lines')

  const path = join(project, 'a.txt')
  const edited = await call(host, 'edit_file', { path: 'a.txt', find: 'one', replace: 'two' })
  expect([readFileSync(path, 'utf8'), asked]).toEqual(['two', [`write ${path}`]])
  expect(await edited.undo()).toMatchObject({ complete: true, steps: [{ outcome: 'undone' }] })
  expect(readFileSync(path, 'utf8')).toBe('one')
  yes = false
  const refused = await call(host, 'write_file', { path: 'b.txt', content: 'x' })
  expect(refused.calls[0]?.outcome).toMatchObject({ status: 'refused', why: { code: 'APPROVAL_REFUSED' } })
  expect(existsSync(join(project, 'b.txt'))).toBe(false)
  const questions = asked.length
  await call(host, 'write_file', { path: '.env', content: 'x' })
  expect([asked.length, existsSync(join(project, '.env'))]).toEqual([questions, false])

  const added = await call(host, 'add_event', { title: 'Tea', start: '2035-01-01T09:00:00' })
  expect((await call(host, 'export_ics', {})).answer).toContain('SUMMARY:Tea')
  expect(await added.undo()).toMatchObject({ complete: true })
  expect((await call(host, 'export_ics', {})).answer).not.toContain('SUMMARY:Tea')
})

test('webhooks and reminders become turns, also those that came while the host was down', async () => {
  const { open } = world()
  const first = await open()
  await call(first, 'remind', { text: 'Water the plants', inMinutes: 0.001 })
  await call(first, 'remind', { text: 'Look at the sky', inMinutes: 0.05 })
  await first.close()
  const host = await open()
  await host.open()
  const url = /http:\S+(?=\/github)/.exec(host.server('webhook')?.client?.instructions ?? '')?.[0]
  const body = JSON.stringify({ action: 'opened', repository: { full_name: 'ada/tea' } })
  const headers = {
    'x-github-delivery': 'd-1',
    'x-github-event': 'issues',
    'x-hub-signature-256': `sha256=${createHmac('sha256', 'secret').update(body).digest('hex')}`,
  }
  for (const _ of [1, 2]) expect((await fetch(`${url}/github`, { method: 'POST', body, headers })).status).toBe(200)
  const answers = async (server: string) => (await host.conversation(`inbox/${server}`).turns()).map(({ answer }) => answer ?? '')
  await expect.poll(() => answers('webhook')).toEqual([expect.stringContaining('issues of ada/tea')])
  await expect
    .poll(() => answers('memory'), { timeout: 15_000 })
    .toEqual([expect.stringContaining('Water the plants'), expect.stringContaining('Look at the sky')])
})
