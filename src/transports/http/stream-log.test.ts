import { describe, expect, it } from 'vitest'
import { fakeClock } from '../../testing/clock.ts'
import type { HttpLimits } from './limits.ts'
import { type LoggedEvent, MemoryStreamLogs } from './stream-log.ts'

const event = (number: number, frame = `"${number}"`): LoggedEvent => ({ number, frame })

async function numbers(logs: MemoryStreamLogs, stream: string, after = 0, session = 's') {
  return (await logs.read(session, stream, after)).map(({ number }) => number)
}

function filled(limits: Partial<HttpLimits>, count: number, now?: () => number) {
  const logs = new MemoryStreamLogs(limits, now)
  for (let number = 1; number <= count; number++) void logs.append('s', 'a', event(number))
  return logs
}

describe('the log of kept streams in memory', () => {
  it('reads what came after an event, of that stream in that session only (trap 23)', async () => {
    const logs = filled({}, 4)
    await logs.append('s', 'b', event(1))
    await logs.append('t', 'a', event(9))
    expect(await numbers(logs, 'a', 2)).toEqual([3, 4])
    expect(await numbers(logs, 'b')).toEqual([1])
    expect(await numbers(logs, 'a', 0, 't')).toEqual([9])
    expect(await numbers(logs, 'c')).toEqual([])
  })

  it('holds the newest events of a stream up to a number and up to so many bytes', async () => {
    expect(await numbers(filled({ logEvents: 2 }, 5), 'a')).toEqual([4, 5])
    expect(await numbers(filled({ logBytes: 9 }, 5), 'a')).toEqual([3, 4, 5])
  })

  it('holds the newest event of a stream even if it alone is over the bound: it may be the answer', async () => {
    const logs = filled({ logBytes: 10 }, 2)
    await logs.append('s', 'a', event(3, `"${'x'.repeat(100)}"`))
    expect(await numbers(logs, 'a')).toEqual([3])
  })

  it('over the common bound, lets streams give way in the order in which they were opened', async () => {
    const logs = filled({ logTotal: 12 }, 2)
    await logs.append('s', 'b', event(1))
    await logs.append('s', 'b', event(2))
    await logs.append('t', 'c', event(1))
    expect(await numbers(logs, 'a')).toEqual([2])
    expect(await numbers(logs, 'b')).toEqual([1, 2])
    expect(await numbers(logs, 'c', 0, 't')).toEqual([1])
  })

  it('over the common bound, one session with many streams takes nothing from another, whichever came first', async () => {
    const logs = new MemoryStreamLogs({ logTotal: 30 })
    await logs.append('bob', 'a', event(1))
    for (let number = 1; number <= 40; number++) await logs.append('ada', `stream ${number % 7}`, event(number))
    expect(await numbers(logs, 'a', 0, 'bob')).toEqual([1])
  })

  it('over the common bound, takes from the stream that is being written last, and the newest event of the others stays', async () => {
    const logs = filled({ logTotal: 12 }, 2)
    await logs.append('s', 'b', event(1))
    await logs.append('s', 'b', event(2))
    await logs.append('s', 'a', event(3))
    expect(await numbers(logs, 'a')).toEqual([1, 2, 3])
    await logs.append('s', 'a', event(4))
    expect(await numbers(logs, 'b')).toEqual([2])
    expect(await numbers(logs, 'a')).toEqual([2, 3, 4])
  })

  it('gives back the room of what is dropped', async () => {
    const logs = filled({ logTotal: 9 }, 3)
    await logs.drop('s', 'a')
    await logs.append('s', 'b', event(1))
    await logs.dropSession('s')
    for (const number of [1, 2, 3]) await logs.append('t', 'c', event(number))
    expect(await numbers(logs, 'a')).toEqual([])
    expect(await numbers(logs, 'b')).toEqual([])
    expect(await numbers(logs, 'c', 0, 't')).toEqual([1, 2, 3])
  })

  it('lets go of events when they are too old', async () => {
    const clock = fakeClock()
    const logs = filled({ retainMs: 1_000 }, 1, clock.now)
    clock.advance(600)
    await logs.append('s', 'a', event(2))
    clock.advance(600)
    logs.sweep?.()
    expect(await numbers(logs, 'a')).toEqual([2])
  })
})
