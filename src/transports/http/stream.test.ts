/** Streams against a reader whose pace the test sets: the body of a web Response. */
import { describe, expect, it } from 'vitest'
import type { Clock } from '../../core/clock.ts'
import { fakeClock } from '../../testing/clock.ts'
import { FetchResponseStream } from './fetch.ts'
import type { HttpLimits } from './limits.ts'
import { Stream } from './stream.ts'
import { MemoryStreamLogs, type StreamLogs } from './stream-log.ts'
import { Streams } from './streams.ts'

/** Knows how many of its timers run. */
function countedClock() {
  const clock = fakeClock()
  const running = new Set<() => void>()
  const start: Clock['setTimeout'] = (fn, ms) => {
    const run = () => {
      running.delete(run)
      fn()
    }
    running.add(run)
    const cancel = clock.setTimeout(run, ms)
    return () => {
      running.delete(run)
      cancel()
    }
  }
  return {
    ...clock,
    setTimeout: start,
    get running() {
      return running.size
    },
  }
}

function open(limits: Partial<HttpLimits> = {}, logs?: StreamLogs) {
  const clock = countedClock()
  const streams = new Streams({ limits, clock, ...(logs && { logs }) })
  const output = new FetchResponseStream(streams.limits.stallMs, undefined, clock)
  const stream = new Stream(streams, output, false)
  const reader = output.body.getReader()
  const decoder = new TextDecoder()
  const read = async () => decoder.decode((await reader.read()).value)
  const readAll = async () => {
    let text = ''
    for (let part = await reader.read(); !part.done; part = await reader.read()) text += decoder.decode(part.value)
    return text
  }
  return { clock, streams, stream, reader, read, readAll }
}

const frame = (size: number, name = 'x') => `{"${name}":"${'x'.repeat(size)}"}`
const names = (text: string) => [...text.matchAll(/^data: \{"(\w+)"/gm)].map(([, name]) => name)

describe('a slow reader', () => {
  it('gets everything in order when it reads at last, and then the end', async () => {
    const { stream, streams, readAll } = open()
    for (let at = 0; at < 10; at++) stream.send(frame(20_000, `n${at}`), false)
    stream.send(frame(10, 'last'), true)
    expect(streams.waiting).toBeGreaterThan(0)
    expect(names(await readAll())).toEqual([...Array.from({ length: 10 }, (_, at) => `n${at}`), 'last'])
    expect([streams.waiting, streams.size]).toEqual([0, 0])
  })

  it('gets only the newest of what may be merged', async () => {
    const { stream, readAll } = open()
    stream.send(frame(70_000, 'first'), false)
    for (let at = 0; at < 50; at++) stream.send(frame(10_000, `progress${at}`), false, 'p')
    stream.send('{"last":1}', true)
    expect(names(await readAll())).toEqual(['first', 'progress49', 'last'])
  })

  it('is cut when it takes nothing for too long with a full queue', async () => {
    const { clock, stream, streams, reader } = open()
    let closes = 0
    stream.onClose(() => closes++)
    for (let at = 0; at < 6; at++) stream.send(frame(70_000), false)
    clock.advance(9_999)
    expect(closes).toBe(0)
    clock.advance(1)
    expect([closes, stream.closed, streams.waiting, streams.size]).toEqual([1, true, 0, 0])
    await expect(reader.read()).rejects.toThrow('stalled')
  })

  it('is given its time anew whenever it takes something', async () => {
    const { clock, stream, read } = open()
    for (let at = 0; at < 20; at++) stream.send(frame(70_000), false)
    for (let at = 0; at < 5; at++) {
      clock.advance(9_000)
      await read()
    }
    expect(stream.closed).toBe(false)
  })

  it('that has caught up is no longer watched', async () => {
    const { clock, stream, read } = open()
    for (let at = 0; at < 6; at++) stream.send(frame(70_000), false)
    stream.send('{"caughtup":1}', false)
    while (!(await read()).includes('caughtup'));
    clock.advance(60_000)
    expect(stream.closed).toBe(false)
  })

  it('is left alone while its queue is not full', () => {
    const { clock, stream } = open()
    stream.send(frame(70_000), false)
    stream.send(frame(100_000), false)
    clock.advance(60_000)
    expect(stream.closed).toBe(false)
  })

  it('is cut at once when more waits than may wait at all: memory stays bounded (D09)', () => {
    const { stream, streams } = open({ queueCeiling: 1_000_000 })
    let most = 0
    for (let at = 0; at < 1_000 && !stream.closed; at++) {
      stream.send(frame(80_000), false)
      most = Math.max(most, streams.waiting)
    }
    expect(stream.closed).toBe(true)
    expect(most).toBeLessThanOrEqual(1_000_000)
  })

  it('goes without what can be spared, and still gets its answer', async () => {
    const { stream, readAll } = open({ queueCeiling: 300_000 })
    for (let at = 0; at < 100; at++) stream.send(frame(80_000, 'log'), false, undefined, true)
    expect(stream.closed).toBe(false)
    stream.send(frame(10, 'answer'), true)
    const said = names(await readAll())
    expect(said.at(-1)).toBe('answer')
    expect(said.length).toBeLessThan(10)
  })

  it('may wait for less when all slow readers together wait for too much', () => {
    const { stream, streams } = open({ queueTotal: 500_000 })
    for (let at = 0; at < 20 && !stream.closed; at++) stream.send(frame(80_000), false)
    expect([stream.closed, streams.waiting]).toEqual([true, 0])
  })

  it('gets its answer whatever the size of it and of the queue', async () => {
    const { stream, readAll } = open({ queueCeiling: 300_000 })
    for (let at = 0; at < 4; at++) stream.send(frame(80_000), false)
    stream.send(frame(5_000_000, 'answer'), true)
    expect(names(await readAll()).at(-1)).toBe('answer')
  })

  it('that never fetches its answer is cut after a while', async () => {
    const { clock, stream, streams, reader } = open()
    stream.send(frame(100_000), true)
    expect(streams.size).toBe(1)
    clock.advance(10_000)
    expect(streams.size).toBe(0)
    await expect(reader.read()).rejects.toThrow()
  })
})

describe('a silent stream', () => {
  it('is kept alive by a comment within the longest silence allowed, and only then', async () => {
    const { clock, stream, read } = open()
    stream.send('{"a":1}', false)
    expect(await read()).toContain('{"a":1}')
    clock.advance(8_000)
    stream.send('{"b":1}', false)
    expect(await read()).not.toContain('keep-alive')
    clock.advance(15_000)
    expect(await read()).toBe(': keep-alive\n\n')
  })

  it('gets its comment in time also among many, though not all at once', async () => {
    const { clock, streams } = open()
    const bodies = Array.from({ length: 50 }, () => {
      const output = new FetchResponseStream(1_000, undefined, clock)
      const stream = new Stream(streams, output, false)
      return { stream, output }
    })
    const comments = async () => {
      for (const { stream } of bodies) stream.end()
      const texts = await Promise.all(bodies.map(({ output }) => new Response(output.body).text()))
      return texts.map(text => text.split('keep-alive').length - 1)
    }
    clock.advance(9_000)
    const early = bodies.filter(({ output }) => output.silence === 0).length
    expect([early > 0, early < 20]).toEqual([true, true])
    clock.advance(6_000)
    expect(new Set(await comments())).toEqual(new Set([1]))
  })

  it('shares one timer with all others, and none is left when they are gone', async () => {
    const { clock, stream, streams, readAll } = open()
    for (let at = 0; at < 10; at++) new Stream(streams, new FetchResponseStream(1_000, undefined, clock), true)
    expect(clock.running).toBe(1)
    streams.close()
    stream.send('{"last":1}', true)
    await readAll()
    clock.advance(5_000)
    expect([clock.running, streams.size]).toEqual([0, 0])
  })

  it('that does not read gets no comments on top', async () => {
    const { clock, stream, readAll } = open()
    stream.send(frame(70_000), false)
    stream.send(frame(10), false)
    clock.advance(600_000)
    stream.send('{"last":1}', true)
    expect(await readAll()).not.toContain('keep-alive')
  })
})

describe('a log that takes its time', () => {
  /** As a store would: every step ends later. */
  function slowLogs(): StreamLogs {
    const inner = new MemoryStreamLogs()
    const later = <T>(value: T | PromiseLike<T>) => new Promise<T>(done => setImmediate(() => done(value)))
    return {
      append: (...args) => later(inner.append(...args)),
      read: (...args) => later(undefined).then(() => inner.read(...args)),
      drop: (...args) => later(inner.drop(...args)),
      dropSession: session => later(inner.dropSession(session)),
    }
  }

  it('is read until the reader is level with the stream, and nothing said meanwhile is lost or doubled', async () => {
    const { clock, stream, streams, reader } = open({}, slowLogs())
    stream.keep('s')
    for (let at = 0; at < 3; at++) stream.send(`{"n${at}":1}`, false)
    await reader.cancel()
    const output = new FetchResponseStream(1_000, undefined, clock)
    const found = streams.find('s', `${stream.id}-1`)
    found?.stream.resume(output, found.number)
    stream.send('{"n3":1}', false)
    await new Promise(setImmediate)
    stream.send('{"n4":1}', false)
    await new Promise(setImmediate)
    setImmediate(() => stream.send('{"n5":1}', true))
    const text = await new Response(output.body).text()
    expect(names(text)).toEqual(['n1', 'n2', 'n3', 'n4', 'n5'])
  })

  it('does not lose what is said while it is read, though it had nothing when that began', async () => {
    const inner = new MemoryStreamLogs()
    const read: StreamLogs['read'] = async (...args) => {
      const found = await inner.read(...args)
      await new Promise(setImmediate)
      return found
    }
    const logs = { append: inner.append.bind(inner), read, drop: inner.drop.bind(inner), dropSession: () => {} }
    const { clock, stream, reader } = open({}, logs)
    stream.keep('s')
    await reader.cancel()
    const output = new FetchResponseStream(1_000, undefined, clock)
    stream.resume(output, 0)
    await Promise.resolve()
    stream.send('{"n1":1}', false)
    setImmediate(() => setImmediate(() => setImmediate(() => stream.send('{"n2":1}', true))))
    expect(names(await new Response(output.body).text())).toEqual(['n1', 'n2'])
  })

  it('that fails is counted, and the reader who needs it is cut', async () => {
    const broken = () => Promise.reject(new Error('disk'))
    const { clock, stream, streams, reader } = open({}, { append: broken, read: broken, drop: broken, dropSession: broken })
    stream.keep('s')
    stream.send('{"a":1}', false)
    await reader.cancel()
    const output = new FetchResponseStream(1_000, undefined, clock)
    stream.resume(output, 0)
    await expect(new Response(output.body).text()).rejects.toThrow()
    expect([streams.unlogged, streams.size]).toEqual([1, 0])
    streams.forget('s')
    await new Promise(setImmediate)
    expect(streams.unlogged).toBe(2)
  })
})
