import { EventEmitter } from 'node:events'
import { PassThrough } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { createHost } from '../../host/create.ts'
import type { Host } from '../../host/host.ts'
import { type ScriptStep, scripted } from '../../host/models/scripted.ts'
import type { BudgetLimit } from '../../policy/budgets/budgets.ts'
import type { PolicyRules } from '../../policy/rules/rule.ts'
import { createServer, type Server } from '../../server/index.ts'
import { memoryStore } from '../../stores/memory.ts'
import type { Store } from '../../stores/store.ts'
import { memoryPair } from '../../transports/memory.ts'
import { runTerminal } from './terminal.ts'

interface Given {
  readonly script?: readonly ScriptStep[]
  readonly interactive?: boolean
  readonly policy?: PolicyRules
  readonly env?: Readonly<Record<string, string>>
  readonly isTTY?: boolean
  readonly enable?: readonly string[]
  readonly budgets?: readonly BudgetLimit[]
  readonly store?: Store
  /** The name of the server in the config. Default `here`. */
  readonly name?: string
  /** What a test does to the host before the terminal has it. */
  readonly opened?: (host: Host) => Host
}

/** A terminal with one server in memory. Where it is interactive, what is sent are keys. */
function open(
  server: Server,
  {
    script = [],
    interactive = true,
    policy = {},
    env = { NO_COLOR: '1' },
    isTTY = false,
    enable = ['*'],
    budgets = [],
    store = memoryStore(),
    name = 'here',
    opened = host => host,
  }: Given = {},
) {
  const input = new PassThrough()
  const signals = new EventEmitter()
  let [out, read] = ['', 0]
  const write = (text: string) => {
    out += text
  }
  const output = { isTTY, columns: 100, write }
  const model = scripted(script)
  const connect = () => {
    const [here, there] = memoryPair()
    server.acceptor.accept(there)
    return here
  }
  const servers = { [name]: { target: connect, live: { enable } } }
  const ended = runTerminal({
    open: async ({ confirm: _, ...side }) => opened(await createHost({ ...side, servers, model, policy, budgets, store })),
    ...{ input, output, signals, interactive, env },
    model: model.info,
    place: 'memory:',
  })
  onTestFinished(async () => {
    input.end()
    await ended
    await server.close()
  })
  return {
    ended,
    signals,
    model,
    output: () => out,
    end: () => input.end(),
    /** Sends keys, and waits for what comes of them. */
    type: async (keys: string | undefined, until: string | RegExp): Promise<string> => {
      if (keys !== undefined) input.write(keys)
      await expect.poll(() => out.slice(read), { interval: 5 }).toMatch(until)
      const said = out.slice(read)
      read = out.length
      return said
    },
  }
}

const named = () => createServer({ name: 'here', version: '1.0.0' })

function acting(done: string[] = []) {
  const server = named()
  server.tool('act', { input: z.object({ what: z.string() }) }, ({ what }) => `${done.push(what)}`)
  return server
}

const act: ScriptStep = { calls: [{ name: 'act', arguments: { what: 'it' } }] }
const asks: PolicyRules = { rules: [{ name: 'careful', do: 'ask', when: { kind: 'tool' } }] }

test('a question takes the next line for its answer: yes does it, once does not last, and all else is no', async () => {
  const done: string[] = []
  const script = [act, 'A', act, 'B', act, 'C', act, 'D']
  const { type } = open(acting(done), { script, policy: asks })
  await type(undefined, /Ctrl-D ends/)
  await type('go\r', /Allow the tool act[\s\S]*\[N\]o › /)
  expect(await type('what?\r', /turn 1/)).toMatch(/Refused\.[\s\S]*✗ refused here\.act[\s\S]*APPROVAL_REFUSED, rule careful/)
  await type('go\r', /\[N\]o › /)
  expect(await type('o\r', /turn 2/)).toContain('✓ here.act')
  await type('go\r', /\[N\]o › /)
  await type('yes\r', /turn 3/)
  expect(await type('go\r', /turn 4/)).not.toContain('Allow')
  expect(done).toEqual(['it', 'it', 'it'])
})

test('the end of the input refuses the question that is open, and ends the terminal', async () => {
  const done: string[] = []
  const { type, ended } = open(acting(done), { script: [act, 'A'], policy: asks })
  await type(undefined, /Ctrl-D ends/)
  await type('go\r', /\[N\]o › /)
  await type('\x04', /refused here\.act/)
  await ended
  expect(done).toEqual([])
})

test('questions come one at a time: an answer goes to the one on the screen, which its prompt names', async () => {
  const done: string[] = []
  const each = (what: string) => ({ name: 'act', arguments: { what } })
  const script: readonly ScriptStep[] = [{ calls: [each('one'), each('two'), each('three')] }, 'Done.']
  const { type, output } = open(acting(done), { script, policy: asks })
  await type(undefined, /Ctrl-D ends/)
  const first = await type('go\r', /1\. here\.act \(2 more wait\): .*\[N\]o › /)
  expect(first.match(/Allow the tool act/g)).toHaveLength(1)
  expect(first).toContain('"one"')
  const second = await type('o\r', /2\. here\.act \(1 more waits\): .*\[N\]o › /)
  expect([second.includes('"two"'), second.includes('"three"')]).toEqual([true, false])
  const third = await type('n\r', /3\. here\.act: .*\[N\]o › /)
  expect(third).toContain('"three"')
  await type('o\r', /turn 1/)
  expect(done.sort()).toEqual(['one', 'three'])
  expect(output()).not.toContain('for a while')
})

test('the fields of a form stay together while another one waits', async () => {
  const server = named()
  const schema = z.object({ name: z.string(), age: z.int() })
  server.tool('ask', {}, async (_, ctx) => JSON.stringify(await ctx.elicit({ message: 'Who are you?', schema })))
  const { type, model } = open(server, { script: [{ calls: [{ name: 'ask' }, { name: 'ask' }] }, 'Done.'] })
  await type(undefined, /Ctrl-D ends/)
  const first = await type('go\r', /1\. here: name \(1 more waits\): /)
  expect(first.match(/Who are you\?/g)).toHaveLength(1)
  await type('Kim\r', /1\. here: age/)
  await type('42\r', /2\. here: name: /)
  await type('Bo\r', /2\. here: age/)
  await type('7\r', /turn 1/)
  expect(JSON.stringify(model.requests.at(-1)?.messages)).toMatch(/Kim\W.*42.*Bo\W.*7|Bo\W.*7.*Kim\W.*42/)
})

test('a yes says how long it counts: to a call for an hour, to a feature set until it changes', async () => {
  const server = acting()
  server.featureSet('here.news', { description: 'News', uses: ['pushEvents'] })
  const { type } = open(server, { script: [act, 'A'], policy: asks, enable: [] })
  await type(undefined, /here\.news of here: \[y\]es to exactly this, until it changes \(at most 1 year\)/)
  await type('n\r', /Ctrl-D ends|Refused/)
  await type('go\r', /here\.act: \[y\]es to exactly this, for 1 hour · \[o\]nce/)
  await type('n\r', /turn 1/)
})

test('a refused event is shown when it comes, and listed by /inbox with its text and the reason', async () => {
  const server = named()
  const set = server.featureSet('here.news', { description: 'News', uses: ['pushEvents'] })
  const policy: PolicyRules = { rules: [{ name: 'no-spam', do: 'deny', when: { kind: 'push', tags: 'spam' } }] }
  const { type } = open(server, { script: ['Heard.'], policy, interactive: false })
  await type(undefined, /Ctrl-D ends/)
  await set.push({ eventId: 'bad-1', content: 'Buy this', tags: ['spam'] })
  expect(await type(undefined, /no-spam\)/)).toMatch(/✗ event bad-1 of here\.news was refused/)
  await set.push({ eventId: 'good-1', content: 'It rains in Bergen' })
  await type(undefined, /turn 1/)
  const listed = await type('/inbox\n', /done[\s\S]*Bergen/)
  expect(listed).toMatch(/refused here\/here\.news bad-1[\s\S]*rule no-spam/)
  expect(listed).toMatch(/done +here\/here\.news good-1 .*\n +│ It rains in Bergen/)
})

test('/inbox also lists events of servers that the config no longer names', async () => {
  const server = named()
  const set = server.featureSet('here.news', { description: 'News', uses: ['pushEvents'] })
  const store = memoryStore()
  const first = open(server, { script: ['Heard.'], interactive: false, store })
  await first.type(undefined, /Ctrl-D ends/)
  await set.push({ eventId: 'good-1', content: 'It rains in Bergen' })
  await first.type(undefined, /turn 1/)
  first.end()
  await first.ended
  const later = open(named(), { interactive: false, store, name: 'other' })
  expect(await later.type('/inbox\n', /Bergen|pushed anything/)).toMatch(/done +here\/here\.news good-1/)
})

test('/exit and /server are known, and what is nearly a command is answered with the command', async () => {
  const { type, ended, model } = open(named(), { interactive: false })
  await type('/server\n', /● here/)
  expect(await type('/servrs\n', /→.*\n/)).toContain('Did you mean /servers?')
  await type('/exit\n', /exit/)
  await ended
  expect(model.requests).toEqual([])
})

test('/budgets shows what each server has left, and when the window ends', async () => {
  const server = acting()
  server.featureSet('here.news', { description: 'News', uses: ['pushEvents'] })
  const budgets = [{ name: 'thinking', counts: 'requests', most: 3, per: '1h' }] as const
  const { type } = open(server, { script: ['Hello.'], budgets, interactive: false })
  await type('hello\n', /turn 1/)
  // What the user asks for is no server's spending.
  expect(await type('/budgets\n', /resets in .*\n/)).toMatch(/thinking +here +0 of 3 requests · resets in \d/)
  const none = open(acting(), { interactive: false })
  expect(await none.type('/budget\n', /There are no budgets.*\n/)).toContain('host.budgets')
})

test('without anybody to ask the answer is no, at once and in a line; /allow is a yes to exactly that, once', async () => {
  const done: string[] = []
  const other: ScriptStep = { calls: [{ name: 'act', arguments: { what: 'other' } }] }
  const { type } = open(acting(done), { script: [act, 'A', other, 'B', act, 'C', act, 'D'], policy: asks, interactive: false })
  await type('go\n', /turn 1/)
  await type('/allow\n', /the next time/)
  expect(await type('go\n', /turn 2/)).toContain('Refused: without a terminal, nobody can be asked')
  expect(done).toEqual([])
  expect(await type('go\n', /turn 3/)).toContain('Approved by your /allow')
  expect(await type('go\n', /turn 4/)).toContain('Refused')
  expect(done).toEqual(['it'])
})

test('/allow enables a feature set as it was declared when it was refused; what it declares later is refused again', async () => {
  const server = named()
  const news = server.featureSet('here.news', { description: 'News', uses: ['pushEvents'] })
  const { type } = open(server, { interactive: false, enable: [] })
  const asked = await type(undefined, /Refused[\s\S]*/)
  expect(asked).toContain('Allow the feature set here.news of here? If you allow it, it may start turns on its own.')
  await type('/allow\n', /✓[\s\S]*Approved\./)
  await type('/servers here\n', /on +here\.news/)
  news.beforeInference(() => [])
  expect(await type(undefined, /Refused/)).toContain('this was added after it was enabled: reads your messages')
  await type('/servers here\n', /off +here\.news/)
})

test('a form is filled in field by field, and what does not fit is asked for again', async () => {
  const server = named()
  const schema = z.object({ name: z.string(), age: z.int(), colour: z.enum(['red', 'blue']), news: z.boolean().default(false) })
  server.tool('ask', {}, async (_, ctx) => JSON.stringify(await ctx.elicit({ message: 'Who are you?', schema })))
  const call: ScriptStep = { calls: [{ name: 'ask' }] }
  const { type, model } = open(server, { script: [call, 'A', call, 'B'] })
  await type('go\r', /asks:\n +│ Who are you\?[\s\S]*name/)
  await type('Kim\r', /age/)
  await type('old\r', /This value is not valid/)
  await type('42\r', /red[\s\S]*blue/)
  await type('blue\r', /news/)
  await type('\r', /turn 1/)
  expect(JSON.stringify(model.requests.at(-1)?.messages)).toMatch(/Kim.*42.*blue/)
  await type('go\r', /name/)
  await type('/no\r', /turn 2/)
  expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain('decline')
})

test('undoing a call that one said no to says that nothing had been done', async () => {
  const server = named()
  server.tool('wipe', {}, async (_, ctx) => ((await ctx.confirm('Wipe all?')) ? 'Gone' : 'It stays'))
  const { type } = open(server, { script: [{ calls: [{ name: 'wipe' }] }, 'No.'], interactive: false })
  await type('go\n', /turn 1/)
  const said = await type('/undo\n', /wipe.*\n/)
  expect(said).toMatch(
    /is undone; there was nothing to undo\n +· nothing here\.wipe was not done: The question "Wipe all\?" was answered with no/,
  )
  expect(said).not.toContain('remain')
})

test('a form is declined where nobody can fill it in', async () => {
  const server = named()
  server.tool('ask', {}, async (_, ctx) =>
    JSON.stringify(await ctx.elicit({ message: 'Who?', schema: z.object({ name: z.string() }) })),
  )
  const { type } = open(server, { script: [{ calls: [{ name: 'ask' }] }, 'A'], interactive: false })
  expect(await type('go\n', /turn 1/)).toContain('Declined: without a terminal, nobody can be asked')
})

test('Ctrl-C stops the turn under way and leaves the terminal, a second one ends it', async () => {
  const { type, ended } = open(named(), { script: [{ text: 'late', latencyMs: 600_000 }, 'soon'] })
  await type('go\r', /go/)
  await expect.poll(async () => type('\u0003', /stopping|again ends/)).toMatch(/stopping/)
  await type(undefined, /■ stopped[\s\S]*turn 1/)
  expect(await type('go\r', /turn 2/)).toContain('soon')
  await type('\u0003', /Ctrl-C again/)
  await type('\u0003', /\n$/)
  await ended
})

test('an event wakes the agent while something is half typed, and that is there again behind it', async () => {
  const server = named()
  const set = server.featureSet('here.news', { description: 'News', uses: ['pushEvents'] })
  const { type, model } = open(server, { script: ['I have heard.', 'Yes.'] })
  await type('half', /half/)
  await set.push({ eventId: 'e1', content: 'It rains' })
  const woken = await type(undefined, /turn 1[\s\S]*› half/)
  expect(woken).toMatch(/◆ here\.news wakes the agent \(here, event e1\)\n +│ It rains\n │ I have heard\./)
  await type(' typed\r', /turn 2/)
  expect(JSON.stringify(model.requests.at(-1)?.messages.at(-1))).toContain('half typed')
})

test('what an event said is shown also where its turn is over before it is shown', async () => {
  const server = named()
  const set = server.featureSet('here.news', { description: 'News', uses: ['pushEvents'] })
  const opened = (host: Host): Host => {
    const read = host.inbox.get.bind(host.inbox)
    const get: typeof read = async (...event) => {
      await expect.poll(async () => (await read(...event))?.state).toBe('done')
      return read(...event)
    }
    Object.defineProperty(host.inbox, 'get', { value: get })
    return host
  }
  const { type } = open(server, { script: ['I have heard.'], opened })
  await type('half', /half/)
  await set.push({ eventId: 'e1', content: 'It rains' })
  expect(await type(undefined, /turn 1/)).toMatch(/wakes the agent \(here, event e1\)\n +│ It rains\n │ I have heard\./)
})

test('nothing that a server or a model says is obeyed by the terminal', async () => {
  const server = named()
  server.tool('act', { description: 'a \u001b[2Jb' }, () => '\u001b]0;title\u0007')
  server.prompt('trick', { description: '\u001b[8mhidden' }, () => 'x')
  const { type, output } = open(server, {
    script: [{ calls: [{ name: 'act' }] }, '\u001b[1A\u202eword\u009b2J'],
    interactive: false,
  })
  expect(await type('go\n', /turn 1/)).toContain('│ \\u{1b}[1A\\u{202e}word\\u{9b}2J')
  await type('/servers here\n', /act/)
  await type('/prompts\n', /hidden/)
  expect(output()).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/)
})

test('colours are for terminals, unless NO_COLOR says otherwise; a spinner is for terminals alone', async () => {
  const colour = /\u001b\[\d+m/
  const plain = open(named(), { isTTY: true, interactive: false })
  const coloured = open(named(), { isTTY: true, interactive: false, env: {} })
  const piped = open(named(), { interactive: false, env: {} })
  for (const each of [plain, coloured, piped]) await each.type('/help\n', /\/quit/)
  expect([plain, coloured, piped].map(each => colour.test(each.output()))).toEqual([false, true, false])
  expect(piped.output()).not.toContain('\u001b')
})

test('prompts of servers run as /name, resources go beside a message, and Tab proposes both', async () => {
  const server = named()
  server.prompt('greet', { arguments: { who: { required: true } } }, ({ who }) => `Greet ${who}`)
  server.resource('note://one', { name: 'one' }, () => 'what is in it')
  const { type, model } = open(server, { script: ['Hello.', 'Seen.'] })
  await type(undefined, /Ctrl-D ends/)
  await type('/gr', /gr/)
  await type('\t', /eet/)
  await type(' Kim\r', /turn 1/)
  expect(JSON.stringify(model.requests[0]?.messages)).toContain('Greet Kim')
  await type('/attach no', /no/)
  await type('\t', /te:\/\/one/)
  await type('\r', /is attached to your next message/)
  await type('Look\r', /turn 2/)
  expect(JSON.stringify(model.requests[1]?.messages)).toContain('what is in it')
})

test('what cannot be done is said with the way out, and the terminal goes on', async () => {
  const { type } = open(named(), { script: ['Hello.'], interactive: false })
  expect(await type('/nothing\n', /→.*\n/)).toContain('There is no prompt /nothing')
  expect(await type('/undo\n', /yet/)).toContain('There are no turns yet')
  expect(await type('/why e1\n', /no record/)).toContain('There is no record of e1')
  expect(await type('/audit what\n', /Write/)).toContain('outcome=')
  await type('hello\n', /turn 1/)
  expect(await type('/cost 7\n', /no turn/)).toContain('There is no turn 7')
})
