import { describe, expect, it } from 'vitest'
import { type Frame, modernServer, Refusal, type Script, silence } from '../../test/client/scripted-server.ts'
import { fakeClock } from '../testing/clock.ts'
import type { ConnectOptions } from './api.ts'
import type { Client } from './client.ts'
import { connect } from './connect.ts'

/** Completes by doubling. */
const doubling: Script = {
  'completion/complete': ({ argument }) => {
    const { value } = argument as { value: string }
    return { resultType: 'complete', completion: { values: [value + value] } }
  },
}

async function open(script: Script = doubling, options: ConnectOptions = {}) {
  const clock = fakeClock()
  const server = modernServer(script)
  const mcp = await connect(server.connection, { clock, ...options })
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms)
    await new Promise(setImmediate)
  }
  return { server, mcp, pass }
}

const type = (mcp: Client, value: string, more: { signal?: AbortSignal; name?: string; ref?: string } = {}) =>
  mcp.complete(
    { prompt: more.ref ?? 'p' },
    { name: more.name ?? 'a', value },
    more.signal === undefined ? {} : { signal: more.signal },
  )

const sent = (server: { params(method: string): Frame[] }) =>
  server.params('completion/complete').map(({ argument }) => (argument as { value: string }).value)

describe('completions', () => {
  it('are asked for once typing has paused: of rapid questions only the last is sent, and all get its answer', async () => {
    const { server, mcp, pass } = await open()
    await using _ = mcp
    const asked = [type(mcp, 'a')]
    await pass(50)
    asked.push(type(mcp, 'ab'))
    await pass(99)
    asked.push(type(mcp, 'abc'))
    await pass(99)
    expect(sent(server)).toEqual([])
    await pass(1)
    expect(await Promise.all(asked)).toEqual(Array(3).fill({ values: ['abcabc'] }))
    expect(sent(server)).toEqual(['abc'])
  })

  it('about different arguments, prompts or templates do not wait for each other', async () => {
    const { server, mcp, pass } = await open()
    await using _ = mcp
    const asked = [
      type(mcp, '1'),
      type(mcp, '2', { name: 'b' }),
      type(mcp, '3', { ref: 'q' }),
      mcp.complete({ template: 'x:{a}' }, { name: 'a', value: '4' }),
    ]
    await pass(100)
    expect((await Promise.all(asked)).map(({ values }) => values[0])).toEqual(['11', '22', '33', '44'])
    expect(server.params('completion/complete').map(({ ref }) => ref)).toEqual([
      { type: 'ref/prompt', name: 'p' },
      { type: 'ref/prompt', name: 'p' },
      { type: 'ref/prompt', name: 'q' },
      { type: 'ref/resource', uri: 'x:{a}' },
    ])
  })

  it('of one who never pauses are sent all the same, after a second', async () => {
    const { server, mcp, pass } = await open()
    await using _ = mcp
    const asked: Promise<unknown>[] = []
    for (let n = 0; n < 12; n++) {
      asked.push(type(mcp, String(n)))
      await pass(90)
    }
    expect(sent(server)).toEqual(['11'])
    await Promise.all(asked)
  })

  it('may be sent one by one', async () => {
    const { server, mcp } = await open(doubling, { completionDelay: 0 })
    await using _ = mcp
    const answers = await Promise.all(['a', 'b'].map(value => type(mcp, value)))
    expect(answers.map(({ values }) => values)).toEqual([['aa'], ['bb']])
    expect(sent(server)).toEqual(['a', 'b'])
  })

  it('are kept for five seconds, and then asked for again', async () => {
    const { server, mcp, pass } = await open()
    await using _ = mcp
    const first = type(mcp, 'a')
    await pass(100)
    await first
    await pass(4_999)
    expect(await type(mcp, 'a')).toEqual({ values: ['aa'] })
    expect(sent(server)).toEqual(['a'])
    await pass(1)
    const third = type(mcp, 'a')
    await pass(100)
    await third
    expect(sent(server)).toEqual(['a', 'a'])
  })

  it('are kept for as long as is wanted, or not at all', async () => {
    const long = await open(doubling, { completionCache: '1h', completionDelay: 0 })
    await type(long.mcp, 'a')
    await long.pass(3_599_000)
    await type(long.mcp, 'a')
    expect(sent(long.server)).toEqual(['a'])
    await long.pass(1_000)
    await type(long.mcp, 'a')
    expect(sent(long.server)).toEqual(['a', 'a'])
    await long.mcp.close()
    const none = await open(doubling, { completionCache: 0, completionDelay: 0 })
    await type(none.mcp, 'a')
    await type(none.mcp, 'a')
    expect(sent(none.server)).toEqual(['a', 'a'])
    await none.mcp.close()
  })

  it('for the same question while it is under way are one request', async () => {
    const { server, mcp } = await open(doubling, { completionDelay: 0 })
    await using _ = mcp
    await Promise.all([type(mcp, 'a'), type(mcp, 'a'), type(mcp, 'a')])
    expect(sent(server)).toEqual(['a'])
  })

  it('that were kept answer those who were about to ask something else', async () => {
    const { server, mcp, pass } = await open()
    await using _ = mcp
    const first = type(mcp, 'a')
    await pass(100)
    await first
    const typed = type(mcp, 'ab')
    expect(await type(mcp, 'a')).toEqual({ values: ['aa'] })
    expect(await typed).toEqual({ values: ['aa'] })
    await pass(1_000)
    expect(sent(server)).toEqual(['a'])
  })

  it('say what else is filled in', async () => {
    const { server, mcp } = await open(doubling, { completionDelay: 0 })
    await using _ = mcp
    await mcp.complete({ prompt: 'p' }, { name: 'a', value: 'x' }, { arguments: { b: 'y' } })
    expect(server.params('completion/complete')[0]?.['context']).toEqual({ arguments: { b: 'y' } })
  })

  it('that fail fail all who asked, and are not kept', async () => {
    let fails = true
    const { mcp, pass } = await open({
      'completion/complete': () => {
        if (fails) throw new Refusal(-32602, 'no such prompt')
        return { completion: { values: ['ok'] } }
      },
    })
    await using _ = mcp
    const asked = [type(mcp, 'a'), type(mcp, 'ab')].map(promise => promise.catch(error => error.code))
    await pass(100)
    expect(await Promise.all(asked)).toEqual([-32602, -32602])
    fails = false
    const again = type(mcp, 'ab')
    await pass(100)
    expect(await again).toEqual({ values: ['ok'] })
  })

  it.each([[{}], [{ completion: {} }], [{ completion: { values: 'a' } }], [null], ['x']])(
    'that are %j are a broken answer',
    async result => {
      const { mcp } = await open({ 'completion/complete': () => result }, { completionDelay: 0 })
      await using _ = mcp
      await expect(type(mcp, 'a')).rejects.toMatchObject({ kind: 'invalid-result' })
    },
  )
})

describe('giving up a completion', () => {
  const enough = new Error('enough')

  it('concerns only who gives up', async () => {
    const { server, mcp, pass } = await open()
    await using _ = mcp
    const stop = new AbortController()
    const first = type(mcp, 'a', { signal: stop.signal }).catch(error => error)
    const second = type(mcp, 'ab')
    stop.abort(enough)
    expect(await first).toBe(enough)
    await pass(100)
    expect(await second).toEqual({ values: ['abab'] })
    expect(sent(server)).toEqual(['ab'])
  })

  it('before it was sent leaves it unsent', async () => {
    const { server, mcp, pass } = await open()
    await using _ = mcp
    const stop = new AbortController()
    const only = type(mcp, 'a', { signal: stop.signal }).catch(error => error)
    stop.abort(enough)
    expect(await only).toBe(enough)
    await pass(1_000)
    expect(sent(server)).toEqual([])
    const again = type(mcp, 'a')
    await pass(100)
    expect(await again).toEqual({ values: ['aa'] })
  })

  it('that all have given up is cancelled', async () => {
    const { server, mcp } = await open({ 'completion/complete': () => silence }, { completionDelay: 0 })
    await using _ = mcp
    const stops = [new AbortController(), new AbortController()]
    const asked = stops.map(({ signal }) => type(mcp, 'a', { signal }).catch(error => error))
    await server.saw('completion/complete')
    stops[0]?.abort(enough)
    expect(await asked[0]).toBe(enough)
    expect(server.of('notifications/cancelled')).toEqual([])
    stops[1]?.abort(enough)
    expect(await asked[1]).toBe(enough)
    await server.saw('notifications/cancelled')
  })
})
