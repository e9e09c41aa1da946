import { PassThrough, Writable } from 'node:stream'
import { setImmediate as nextRound } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { connectionContract, hear } from '../../../test/transports/contract.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { fakeClock } from '../../testing/clock.ts'
import { serverCarrierLimits } from './limits.ts'
import { StreamConnection, type StreamOptions } from './stream.ts'

function over(input: PassThrough, output: Writable, more: Partial<StreamOptions> = {}): StreamConnection {
  return new StreamConnection({
    carrier: 'stdio',
    input,
    output,
    limits: serverCarrierLimits(),
    serving: true,
    release() {
      input.destroy()
      output.end()
    },
    ...more,
  })
}

connectionContract('a pair of byte streams', async () => {
  const there = new PassThrough()
  const back = new PassThrough()
  return { left: over(back, there, { serving: false }), right: over(there, back), cleanup() {} }
})

/** A writable that never finishes a write until `read` is called. */
function unread() {
  const pending: (() => void)[] = []
  const output = new Writable({ highWaterMark: 1024, write: (_chunk, _encoding, done) => void pending.push(done) })
  return { output, read: () => pending.shift()?.() }
}

describe('StreamConnection', () => {
  it('takes nothing in while too much waits to go out, and goes on where it stopped', async () => {
    const input = new PassThrough()
    const { output, read } = unread()
    const connection = over(input, output, { limits: serverCarrierLimits({ queueBytes: 10_000 }), lingerMs: 1 })
    const heard = await hear(connection, () => void connection.send('x'.repeat(2000)))
    input.write('{"ask":1}\n'.repeat(100))
    await nextRound()
    const before = heard.frames.length
    expect(before).toBeGreaterThan(0)
    expect(before).toBeLessThan(50)
    await nextRound()
    expect(heard.frames).toHaveLength(before)
    while (heard.frames.length < 100) {
      read()
      await nextRound()
    }
    await connection.close()
  })

  it('reads nothing while it rests, and goes on where it stopped', async () => {
    const clock = fakeClock()
    const input = new PassThrough()
    const connection = over(input, new PassThrough(), { serving: false, clock })
    const heard = await hear(connection, frame => {
      if (frame === '{"n":2}') connection.rest(50)
    })
    input.write(Array.from({ length: 10 }, (_, n) => `{"n":${n}}\n`).join(''))
    for (let turn = 0; turn < 20; turn++) await nextRound()
    expect(heard.frames).toHaveLength(3)
    clock.advance(50)
    await heard.until(({ frames }) => frames.length === 10)
    expect(heard.frames.at(-1)).toBe('{"n":9}')
    await connection.close()
  })

  it('goes on reading at the asking end, whatever waits to go out', async () => {
    const input = new PassThrough()
    const { output } = unread()
    const connection = over(input, output, { serving: false, limits: serverCarrierLimits({ queueBytes: 10 }), lingerMs: 1 })
    const heard = await hear(connection)
    for (let at = 0; at < 5; at++) void connection.send('x'.repeat(2000))
    input.write('{"n":1}\n')
    await heard.until(({ frames }) => frames.length === 1)
    await connection.close()
  })

  it('cuts an end that does not read for stallMs, with the reason', async () => {
    const clock = fakeClock()
    const { output } = unread()
    const connection = over(new PassThrough(), output, { clock })
    const heard = await hear(connection)
    void connection.send('x'.repeat(1_000_000))
    await nextRound()
    clock.advance(10_000)
    expect(heard.closes).toHaveLength(1)
    expect(heard.closes[0]?.message).toContain('reads too slowly')
    await expect(connection.send('{}')).rejects.toBeInstanceOf(ConnectionError)
  })

  it('above the ceiling it refuses a request and goes on', async () => {
    const { output } = unread()
    const connection = over(new PassThrough(), output, { limits: serverCarrierLimits({ queueCeiling: 3000 }), lingerMs: 1 })
    const heard = await hear(connection)
    void connection.send('x'.repeat(2000))
    await nextRound()
    void connection.send('x'.repeat(2000), { id: 1 })
    await expect(connection.send('x'.repeat(2000), { id: 2 })).rejects.toMatchObject({ kind: 'too-large' })
    expect(heard.closes).toEqual([])
    await connection.close()
  })

  it('above the ceiling it ends rather than lose an answer', async () => {
    const { output } = unread()
    const connection = over(new PassThrough(), output, { limits: serverCarrierLimits({ queueCeiling: 3000 }) })
    const heard = await hear(connection)
    void connection.send('x'.repeat(2000))
    await nextRound()
    void connection.send('x'.repeat(2000))
    await expect(connection.send('x'.repeat(2000))).rejects.toMatchObject({ kind: 'too-large' })
    expect(heard.closes).toMatchObject([{ kind: 'too-large' }])
  })

  it('still hears what was on its way when writing fails, then ends with the reason', async () => {
    const input = new PassThrough()
    const output = new Writable({ write: (_chunk, _encoding, done) => done(new Error('write EPIPE')) })
    const connection = over(input, output)
    const heard = await hear(connection)
    void connection.send('{}')
    await nextRound()
    await nextRound()
    await expect(connection.send('{}')).rejects.toMatchObject({ kind: 'lost' })
    input.end('{"last":"words"}\n')
    await heard.until(({ closes }) => closes.length > 0)
    expect(heard.frames).toEqual(['{"last":"words"}'])
    expect(heard.closes[0]?.message).toContain('EPIPE')
  })

  it('ends by itself when writing fails and reading gives nothing more', async () => {
    const clock = fakeClock()
    const output = new Writable({ write: (_chunk, _encoding, done) => done(new Error('write EPIPE')) })
    const connection = over(new PassThrough(), output, { clock })
    const heard = await hear(connection)
    void connection.send('{}')
    await nextRound()
    await nextRound()
    clock.advance(2000)
    expect(heard.closes).toMatchObject([{ kind: 'lost' }])
  })

  it('the end of input is no failure, and what was answered by then still leaves', async () => {
    const input = new PassThrough()
    const output = new PassThrough()
    const connection = over(input, output)
    const heard = await hear(connection, frame => void Promise.resolve().then(() => connection.send(frame)))
    input.end('{"n":1}\n{"n":2}')
    await heard.until(({ closes }) => closes.length > 0)
    expect(heard.closes).toEqual([undefined])
    expect((await output.toArray()).join('')).toBe('{"n":1}\n{"n":2}\n')
  })

  it('hears of the end of an input that had ended before it started', async () => {
    const input = new PassThrough()
    input.end()
    input.resume()
    await nextRound()
    const heard = await hear(over(input, new PassThrough()))
    await heard.until(({ closes }) => closes.length > 0)
    expect(heard.closes).toEqual([undefined])
  })

  it('delivers nothing more once it is closed from within the sink', async () => {
    const input = new PassThrough()
    const connection = over(input, new PassThrough())
    const heard = await hear(connection, () => void connection.close())
    input.write('{"n":1}\n{"n":2}\n')
    await heard.until(({ closes }) => closes.length > 0)
    expect(heard.frames).toEqual(['{"n":1}'])
  })

  it('closes in time even if the other end takes nothing', async () => {
    const clock = fakeClock()
    const { output } = unread()
    const connection = over(new PassThrough(), output, { clock })
    const heard = await hear(connection)
    void connection.send('x'.repeat(5000))
    const closed = connection.close()
    await nextRound()
    expect(heard.closes).toEqual([])
    clock.advance(2000)
    await closed
    expect(heard.closes).toEqual([undefined])
  })

  it('tells who speaks: the carrier and the connection itself', () => {
    const connection = over(new PassThrough(), new PassThrough())
    expect(connection.caller).toEqual({ carrier: 'stdio', connection })
  })
})
