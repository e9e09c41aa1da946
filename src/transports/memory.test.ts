import { describe, expect, it } from 'vitest'
import { connectionContract, hear } from '../../test/transports/contract.ts'
import { fakeClock } from '../testing/clock.ts'
import { memoryPair } from './memory.ts'

connectionContract('memory', async () => {
  const [left, right] = memoryPair()
  return { left, right, cleanup() {} }
})

describe('memoryPair', () => {
  it('keeps frames for an end that is not started, and tells it of the end after them', async () => {
    const [left, right] = memoryPair()
    await hear(left)
    void left.send('{"n":1}')
    void left.send('{"n":2}')
    await left.close()
    const heard = await hear(right)
    await heard.until(({ closes }) => closes.length > 0)
    expect(heard.frames).toEqual(['{"n":1}', '{"n":2}'])
  })

  it('merges frames for an end that is not started, but delivers every one to an end that is', async () => {
    const [left, right] = memoryPair()
    for (const n of [1, 2, 3]) void left.send(`{"n":${n}}`, { merge: 'p' })
    const heard = await hear(right)
    for (const n of [4, 5]) void left.send(`{"n":${n}}`, { merge: 'p' })
    await heard.until(({ frames }) => frames.length === 3)
    expect(heard.frames).toEqual(['{"n":3}', '{"n":4}', '{"n":5}'])
  })

  it('refuses a frame that is too long, counted in bytes, and goes on', async () => {
    const [left, right] = memoryPair({ limits: { frameBytes: 9 } })
    const heard = await hear(right)
    for (const frame of ['123456789', '1234567890', '"€€"', '"€€€"', '1']) void left.send(frame)
    await heard.until(({ frames }) => frames.at(-1) === '1')
    expect(heard.frames).toEqual(['123456789', '"€€"', '1'])
    expect(heard.faults.map(fault => fault.kind)).toEqual(['too-large', 'too-large'])
  })

  it('cuts both ends when one is never started and too much waits for it', async () => {
    const clock = fakeClock()
    const [left, right] = memoryPair({ clock, limits: { queueBytes: 10 } })
    const atLeft = await hear(left)
    void left.send('{"long":"enough"}')
    clock.advance(10_000)
    await atLeft.until(({ closes }) => closes.length > 0)
    const atRight = await hear(right)
    await atRight.until(({ closes }) => closes.length > 0)
    expect(atRight.frames).toEqual([])
    expect([atLeft.closes[0]?.message, atRight.closes[0]?.message]).toEqual([
      expect.stringContaining('reads too slowly'),
      expect.stringContaining('reads too slowly'),
    ])
  })

  it('above the ceiling it refuses a request, and ends rather than lose an answer', async () => {
    const [left, right] = memoryPair({ limits: { queueCeiling: 10 } })
    const [atLeft, atRight] = await Promise.all([hear(left), hear(right)])
    void left.send('12345678')
    await expect(left.send('12345678', { id: 1 })).rejects.toMatchObject({ kind: 'too-large' })
    await atRight.until(({ frames }) => frames.length === 1)
    void left.send('12345678')
    await expect(left.send('12345678')).rejects.toMatchObject({ kind: 'too-large' })
    await atLeft.until(({ closes }) => closes.length > 0)
    expect([atLeft.closes, atRight.closes]).toMatchObject([[{ kind: 'too-large' }], [{ kind: 'too-large' }]])
  })

  it('tells who speaks', () => {
    const [left] = memoryPair()
    expect(left.caller).toEqual({ carrier: 'memory', connection: left })
  })
})
