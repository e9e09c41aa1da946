import { EventEmitter } from 'node:events'
import { PassThrough } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { createHost } from '../../host/create.ts'
import { type ScriptStep, scripted } from '../../host/models/scripted.ts'
import type { PolicyRules } from '../../host/policy/rule.ts'
import { createServer, type Server } from '../../server/index.ts'
import { memoryPair } from '../../transports/memory.ts'
import { runTerminal } from './terminal.ts'

interface Given {
  readonly script?: readonly ScriptStep[]
  readonly interactive?: boolean
  readonly policy?: PolicyRules
  readonly env?: Readonly<Record<string, string>>
  readonly isTTY?: boolean
}

/** A terminal with one server in memory. Where it is interactive, what is sent are keys. */
function open(
  server: Server,
  { script = [], interactive = true, policy = {}, env = { NO_COLOR: '1' }, isTTY = false }: Given = {},
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
    server.door.accept(there)
    return here
  }
  const servers = { here: { target: connect, live: { enable: ['*'] } } }
  const ended = runTerminal({
    open: ({ confirm: _, ...side }) => createHost({ ...side, servers, model, policy }),
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
      await expect.poll(() => out.slice(read), { timeout: 20_000, interval: 5 }).toMatch(until)
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

test('without anybody to ask the answer is no, at once and in a line; /allow is a yes to exactly that, once', async () => {
  const done: string[] = []
  const other: ScriptStep = { calls: [{ name: 'act', arguments: { what: 'other' } }] }
  const { type } = open(acting(done), { script: [act, 'A', other, 'B', act, 'C', act, 'D'], policy: asks, interactive: false })
  await type('go\n', /turn 1/)
  await type('/allow\n', /the next time/)
  expect(await type('go\n', /turn 2/)).toContain('Refused: there is nobody to ask without a terminal')
  expect(done).toEqual([])
  expect(await type('go\n', /turn 3/)).toContain('Yes: you said /allow')
  expect(await type('go\n', /turn 4/)).toContain('Refused')
  expect(done).toEqual(['it'])
})

test('a form is filled in field by field, and what does not fit is asked for again', async () => {
  const server = named()
  const schema = z.object({ name: z.string(), age: z.int(), colour: z.enum(['red', 'blue']), news: z.boolean().default(false) })
  server.tool('ask', {}, async (_, ctx) => JSON.stringify(await ctx.elicit({ message: 'Who are you?', schema })))
  const call: ScriptStep = { calls: [{ name: 'ask' }] }
  const { type, model } = open(server, { script: [call, 'A', call, 'B'] })
  await type('go\r', /asks: Who are you\?[\s\S]*name/)
  await type('Kim\r', /age/)
  await type('old\r', /That does not fit/)
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
  expect(said).toMatch(/is undone; nothing had been done\n +· nothing here\.wipe was not done: The answer to "Wipe all\?" was no/)
  expect(said).not.toContain('stays')
})

test('a form is declined where nobody can fill it in', async () => {
  const server = named()
  server.tool('ask', {}, async (_, ctx) =>
    JSON.stringify(await ctx.elicit({ message: 'Who?', schema: z.object({ name: z.string() }) })),
  )
  const { type } = open(server, { script: [{ calls: [{ name: 'ask' }] }, 'A'], interactive: false })
  expect(await type('go\n', /turn 1/)).toContain('Declined: there is nobody to ask without a terminal')
})

test('Ctrl-C stops the turn under way and leaves the terminal, a second one ends it', async () => {
  const { type, ended } = open(named(), { script: [{ text: 'late', latencyMs: 600_000 }, 'soon'] })
  await type('go\r', /go/)
  await expect.poll(async () => type('\u0003', /stopping|again ends/)).toMatch(/stopping/)
  await type(undefined, /■ stopped[\s\S]*turn 1/)
  expect(await type('go\r', /turn 2/)).toContain('soon')
  await type('\u0003', /Ctrl-C again ends/)
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
  expect(woken).toMatch(/◆ here\.news wakes the agent \(here, event e1\)\n +It rains\n I have heard\./)
  await type(' typed\r', /turn 2/)
  expect(JSON.stringify(model.requests.at(-1)?.messages.at(-1))).toContain('half typed')
})

test('nothing that a server or a model says is obeyed by the terminal', async () => {
  const server = named()
  server.tool('act', { description: 'a \u001b[2Jb' }, () => '\u001b]0;title\u0007')
  server.prompt('trick', { description: '\u001b[8mhidden' }, () => 'x')
  const { type, output } = open(server, {
    script: [{ calls: [{ name: 'act' }] }, '\u001b[1A\u202eword\u009b2J'],
    interactive: false,
  })
  expect(await type('go\n', /turn 1/)).toContain('\ufffd[1A\ufffdword\ufffd2J')
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
  await type('\r', /goes beside your next message/)
  await type('Look\r', /turn 2/)
  expect(JSON.stringify(model.requests[1]?.messages)).toContain('what is in it')
})

test('what cannot be done is said with the way out, and the terminal goes on', async () => {
  const { type } = open(named(), { script: ['Hello.'], interactive: false })
  expect(await type('/nothing\n', /→.*\n/)).toContain('There is no prompt /nothing')
  expect(await type('/undo\n', /yet/)).toContain('Nothing was said yet')
  expect(await type('/why e1\n', /noted/)).toContain('Nothing is noted under e1')
  expect(await type('/audit what\n', /Write/)).toContain('outcome=')
  await type('hello\n', /turn 1/)
  expect(await type('/cost 7\n', /no turn/)).toContain('There is no turn 7')
})
