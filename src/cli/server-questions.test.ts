/** Questions of a server, answered by keys. */
import { PassThrough } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import type { Io } from './io.ts'
import { ServerQuestions } from './server-questions.ts'

const form = { type: 'object', properties: { name: { type: 'string' }, age: { type: 'integer' } }, required: ['name'] }
const signal = new AbortController().signal

function terminal(interactive: boolean) {
  const input = new PassThrough()
  const errors = new PassThrough()
  let said = ''
  errors.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const io: Io = { input, output: new PassThrough(), errors, env: { NO_COLOR: '1' }, interactive, colour: false, signal }
  return {
    io,
    type: async (until: RegExp, keys: string): Promise<void> => {
      await expect.poll(() => said, { interval: 5 }).toMatch(until)
      input.write(keys)
    },
  }
}

test('a form is filled in field by field', async () => {
  const { io, type } = terminal(true)
  const asks = new ServerQuestions(io, {})
  onTestFinished(() => asks.close())
  const answer = asks.options.onElicit?.({ mode: 'form', message: 'Who are you?', schema: form }, { signal })
  await type(/Who are you\?[\s\S]*name/, 'Kim\r')
  await type(/age/, '7\r')
  expect(await answer).toEqual({ action: 'accept', content: { name: 'Kim', age: 7 } })
})

test('a form that asks for a password says so before anybody types one, and a page says where it leads', async () => {
  const { io, type } = terminal(true)
  const asks = new ServerQuestions(io, {})
  onTestFinished(() => asks.close())
  const question = { mode: 'form', message: 'Who are you?', schema: form, secrets: ['name'] } as const
  const first = asks.options.onElicit?.(question, { signal })
  await type(/Warning: the form asks for what looks like a password or key \(name\)[\s\S]*declines/, '/no\r')
  expect(await first).toEqual({ action: 'decline' })
  const page = {
    mode: 'url',
    message: 'Sign',
    url: 'https://x.example/bank',
    host: 'x.example',
    elicitationId: undefined,
  } as const
  const second = asks.options.onElicit?.(page, { signal })
  await type(/The link leads to x\.example[\s\S]*\[N\]o/, '\r')
  expect(await second).toEqual({ action: 'decline' })
})

test('a confirmation is a yes only where somebody says yes', async () => {
  const { io, type } = terminal(true)
  const asks = new ServerQuestions(io, {})
  onTestFinished(() => asks.close())
  const question = { message: 'Delete it?', risk: 'destructive', tool: 'delete', arguments: {} } as const
  const first = asks.options.onConfirm?.(question, { signal })
  await type(/Delete it\?/, 'y\r')
  expect(await first).toBe(true)
  const second = asks.options.onConfirm?.(question, { signal })
  await type(/Delete it\?[\s\S]*Delete it\?/, '\r')
  expect(await second).toBe(false)
})

test('a form without fields is accepted only where somebody says yes, and declined by Enter', async () => {
  const { io, type } = terminal(true)
  const asks = new ServerQuestions(io, {})
  onTestFinished(() => asks.close())
  const question = { mode: 'form', message: 'Delete it?', schema: { type: 'object', properties: {} } } as const
  const first = asks.options.onElicit?.(question, { signal })
  await type(/Ctrl-C cancels[\s\S]*\[N\]o/, '\r')
  expect(await first).toEqual({ action: 'decline' })
  const second = asks.options.onElicit?.(question, { signal })
  await type(/\[N\]o[\s\S]*\[N\]o/, 'yes\r')
  expect(await second).toEqual({ action: 'accept' })
})

test('a form that asks for nothing but a yes is a question of yes or no, and declined by Enter', async () => {
  const { io, type } = terminal(true)
  const asks = new ServerQuestions(io, {})
  onTestFinished(() => asks.close())
  const schema = { type: 'object', properties: { confirm: { type: 'boolean', title: 'Proceed?' } }, required: ['confirm'] }
  const question = { mode: 'form', message: 'Delete it?', schema } as const
  const first = asks.options.onElicit?.(question, { signal })
  await type(/Ctrl-C cancels[\s\S]*\[N\]o/, '\r')
  expect(await first).toEqual({ action: 'decline' })
  const second = asks.options.onElicit?.(question, { signal })
  await type(/\[N\]o[\s\S]*\[N\]o/, 'yes\r')
  expect(await second).toEqual({ action: 'accept', content: { confirm: true } })
})

test('without a terminal options answer, and what they do not answer is declined by name', async () => {
  const { io } = terminal(false)
  const given = new ServerQuestions(io, { yes: true, answer: ['name=Ann', 'age=3'] })
  expect(await given.options.onElicit?.({ mode: 'form', message: 'Who?', schema: form }, { signal })).toEqual({
    action: 'accept',
    content: { name: 'Ann', age: 3 },
  })
  const question = { message: 'Pay 3 units?', tool: 'pay', arguments: {}, units: 3, unitLabel: undefined, category: undefined }
  expect(await given.options.onCost?.(question, { signal })).toBe(true)
  const none = new ServerQuestions(io, { answer: ['age=3'] })
  expect(await none.options.onElicit?.({ mode: 'form', message: 'Who?', schema: form }, { signal })).toEqual({
    action: 'decline',
  })
  expect(
    await none.options.onElicit?.(
      { mode: 'url', message: 'Sign', url: 'https://x.example', host: 'x.example', elicitationId: undefined },
      { signal },
    ),
  ).toEqual({ action: 'decline' })
  expect(await none.options.onCost?.(question, { signal })).toBe(false)
  expect(none.declined).toEqual([
    'the server asks: Who? → Run the command in a terminal, or pass --answer name=… --answer age=…',
    'the server asks: Sign → Open https://x.example, and run the command in a terminal',
    'Pay 3 units? → Pass --yes to approve, or run the command in a terminal',
  ])
})

test('--yes answers a form that asks for nothing but a yes, and no other', async () => {
  const { io } = terminal(false)
  const asks = new ServerQuestions(io, { yes: true })
  const confirm = { type: 'object', properties: { confirm: { type: 'boolean' } }, required: ['confirm'] }
  const ask = (schema: typeof form | typeof confirm) =>
    asks.options.onElicit?.({ mode: 'form', message: 'Go on?', schema }, { signal })
  expect(await ask(confirm)).toEqual({ action: 'accept', content: { confirm: true } })
  expect(await ask(form)).toEqual({ action: 'decline' })
})
