import { expect, test } from 'vitest'
import { Problem } from '../../core/problem.ts'
import { fakeClock } from '../../testing/clock.ts'
import type { Model, ModelPart, ModelRequest } from './model.ts'
import { scripted } from './scripted.ts'

const asked: ModelRequest = { system: [], messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }], tools: [] }
const never = new AbortController().signal

async function all(model: Model, signal = never): Promise<readonly ModelPart[]> {
  const parts: ModelPart[] = []
  for await (const part of model.generate(asked, { signal })) parts.push(part)
  return parts
}

test('a script is said line by line, with usage counted', async () => {
  const model = scripted(['One.', { text: 'Two.', calls: [{ name: 'add', arguments: { a: 1 } }] }])
  expect(await all(model)).toEqual([
    { type: 'text', delta: 'One.' },
    { type: 'end', finishReason: 'end_turn', usage: { inputTokens: 6, outputTokens: 1 }, model: 'scripted' },
  ])
  expect((await all(model)).slice(1)).toEqual([
    { type: 'tool_use', id: 'call_2_1', name: 'add', arguments: { a: 1 } },
    { type: 'end', finishReason: 'tool_use', usage: { inputTokens: 6, outputTokens: 3 }, model: 'scripted' },
  ])
  expect(model.requests).toEqual([asked, asked])
})

test('a script that has ended refuses, and says how many answers it has', async () => {
  const model = scripted(['One.'])
  await all(model)
  await expect(all(model)).rejects.toThrow('The script has 1 answers, but the model was called 2 times')
  const again = scripted(['One.'], { again: true })
  await all(again)
  expect((await all(again))[0]).toEqual({ type: 'text', delta: 'One.' })
})

test('the same seed fails at the same answers', async () => {
  const failuresOf = async (seed: number): Promise<string> => {
    const model = scripted('Fine.', { seed, failures: 0.5 })
    let seen = ''
    for (let at = 0; at < 40; at++)
      seen += await all(model).then(
        () => '.',
        () => 'x',
      )
    return seen
  }
  const first = await failuresOf(7)
  expect(first).toMatch(/x/)
  expect(first).toMatch(/\./)
  expect(await failuresOf(7)).toBe(first)
  expect(await failuresOf(8)).not.toBe(first)
})

test('an injected failure is a Problem that waiting may help with', async () => {
  const error = await all(scripted('Fine.', { failures: 1 })).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(Problem)
  expect((error as Problem).retryable).toBe(true)
})

test('latency runs on the given clock, and an abort ends it', async () => {
  const clock = fakeClock()
  const model = scripted('Late.', { latencyMs: 1_000, clock })
  const stop = new AbortController()
  const waiting = all(model, stop.signal)
  stop.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
  const patient = all(model)
  clock.advance(1_000)
  expect(await patient).toHaveLength(2)
})

test('an error of the script comes after what was said before it', async () => {
  const model = scripted([{ text: 'Well', error: new Error('broke off') }])
  const parts: ModelPart[] = []
  await expect(async () => {
    for await (const part of model.generate(asked, { signal: never })) parts.push(part)
  }).rejects.toThrow('broke off')
  expect(parts).toEqual([{ type: 'text', delta: 'Well' }])
})
