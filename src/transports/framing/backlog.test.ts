import { describe, expect, it, vi } from 'vitest'
import type { ConnectionError } from '../../jsonrpc/connection.ts'
import { fakeClock } from '../../testing/clock.ts'
import { Backlog, type FramePiece, pieceBytes, wholeBytes } from './backlog.ts'
import type { QueueLimits } from './limits.ts'

const small: QueueLimits = { queueBytes: 100, spareCeiling: 500, queueCeiling: 1000, stallMs: 10_000 }

function open(limits: QueueLimits = small) {
  const clock = fakeClock()
  const told: string[] = []
  const reasons: ConnectionError[] = []
  const owner = {
    full: () => told.push('full'),
    free: () => told.push('free'),
    stalled: (reason: ConnectionError) => reasons.push(reason),
  }
  return { backlog: new Backlog(owner, limits, clock), clock, told, reasons }
}

function drain(backlog: Backlog): (string | Buffer)[] {
  const taken: (string | Buffer)[] = []
  for (let piece = backlog.take(); piece !== undefined; piece = backlog.take()) taken.push(piece.data)
  return taken
}

describe('Backlog', () => {
  it('gives frames back in the order in which they came', () => {
    const { backlog } = open()
    for (const frame of ['a', 'b', 'c']) backlog.add(frame)
    expect(drain(backlog)).toEqual(['a', 'b', 'c'])
    expect(backlog.bytes).toBe(0)
  })

  it('takes answers up to a ceiling of their own, each counted with what it costs beside its text', () => {
    const { backlog } = open({ ...small, answerCeiling: 400 })
    expect(backlog.add('x'.repeat(500), undefined, true)).toBe(true)
    expect(backlog.add('y', undefined, true)).toBe(false)
    expect(backlog.add('a request')).toBe(true)
    expect(backlog.takeFrame()).toHaveLength(500)
    expect(['1', '2', '3', '4'].map(answer => backlog.add(answer, undefined, true))).toEqual([true, true, true, false])
    expect(drain(backlog)).toEqual(['a request', '1', '2', '3'])
  })

  it('replaces a waiting frame by a later one with the same merge key, at the end', () => {
    const { backlog } = open()
    backlog.add('progress 1', 'p')
    backlog.add('other')
    backlog.add('progress 22', 'p')
    expect(backlog.bytes).toBe('other'.length + 'progress 22'.length)
    expect(drain(backlog)).toEqual(['other', 'progress 22'])
  })

  it('does not merge with a frame that has already left', () => {
    const { backlog } = open()
    backlog.add('progress 1', 'p')
    backlog.take()
    backlog.add('progress 2', 'p')
    expect(drain(backlog)).toEqual(['progress 2'])
  })

  it('counts bytes, not characters', () => {
    const { backlog } = open()
    backlog.add('€uro')
    expect(backlog.bytes).toBe(6)
  })

  it('gives a large frame in pieces that join to the same bytes', () => {
    const { backlog } = open({ ...small, queueCeiling: 2 * wholeBytes })
    const frame = 'è'.repeat(wholeBytes / 2 + 1)
    backlog.add(frame)
    backlog.add('next')
    const pieces: FramePiece[] = []
    for (let piece = backlog.take(); piece !== undefined; piece = backlog.take()) pieces.push(piece)
    expect(pieces.map(piece => piece.final)).toEqual([false, false, false, false, true, true])
    expect(pieces.map(({ data }) => Buffer.byteLength(data))).toEqual([pieceBytes, pieceBytes, pieceBytes, pieceBytes, 2, 4])
    expect(Buffer.concat(pieces.map(({ data }) => Buffer.from(data))).toString()).toBe(`${frame}next`)
  })

  it('says once that it is full and once that it is free again', () => {
    const { backlog, told } = open()
    for (let at = 0; at < 4; at++) backlog.add('x'.repeat(40))
    expect(told).toEqual(['full'])
    drain(backlog)
    expect(told).toEqual(['full', 'free'])
  })

  it('gives up a reader that takes nothing for stallMs while more than queueBytes waits, and says the rule', () => {
    const { backlog, clock, reasons } = open()
    backlog.add('x'.repeat(101))
    clock.advance(9_999)
    expect(reasons).toEqual([])
    clock.advance(1)
    expect(reasons).toHaveLength(1)
    expect(reasons[0]?.kind).toBe('lost')
    expect(reasons[0]?.message).toContain('took 0 of 101 bytes')
    expect(reasons[0]?.message).toContain('queueBytes')
  })

  it('does not run the clock for a queue within its bound', () => {
    const { backlog, clock } = open()
    const timers = vi.spyOn(clock, 'setTimeout')
    backlog.add('x'.repeat(100))
    expect(timers).not.toHaveBeenCalled()
  })

  it('stops the clock when the queue falls back to its bound', () => {
    const { backlog, clock, reasons } = open()
    backlog.add('x'.repeat(60))
    backlog.add('x'.repeat(60))
    backlog.take()
    clock.advance(60_000)
    expect(reasons).toEqual([])
  })

  it('bears with a slow reader of much, as long as it takes queueBytes in every stallMs', () => {
    const { backlog, clock, reasons } = open()
    for (let at = 0; at < 20; at++) backlog.add('x'.repeat(50))
    for (let round = 0; round < 5; round++) {
      backlog.take()
      backlog.take()
      clock.advance(10_000)
    }
    expect(reasons).toEqual([])
    backlog.take()
    clock.advance(10_000)
    expect(reasons).toHaveLength(1)
  })

  it('refuses what would go above the ceiling and keeps what it has', () => {
    const { backlog } = open()
    expect(backlog.add('x'.repeat(900))).toBe(true)
    expect(backlog.add('x'.repeat(101))).toBe(false)
    expect(backlog.bytes).toBe(900)
  })

  it('takes one frame above the ceiling when nothing else waits', () => {
    const { backlog } = open()
    expect(backlog.add('x'.repeat(2000))).toBe(true)
  })

  it('leaves out what can be spared before it refuses the rest, but not when nothing else waits', () => {
    const { backlog } = open()
    expect(backlog.add('l'.repeat(600), undefined, false, true)).toBe(true)
    expect(backlog.bytes).toBe(600)
    expect(backlog.add('more log', undefined, false, true)).toBe(true)
    expect(backlog.bytes).toBe(600)
    expect(backlog.add('an answer')).toBe(true)
    expect(drain(backlog)).toEqual(['l'.repeat(600), 'an answer'])
  })

  it('gives a reader no second term for what the kernel took at first', () => {
    const { backlog, clock, reasons } = open()
    backlog.add('a'.repeat(150))
    backlog.add('b'.repeat(800))
    backlog.take()
    clock.advance(12_499)
    expect(reasons).toEqual([])
    clock.advance(1)
    expect(reasons).toHaveLength(1)
  })

  it('forgets everything when cleared, and tells nothing more', () => {
    const { backlog, clock, told, reasons } = open()
    backlog.add('x'.repeat(200))
    backlog.clear()
    clock.advance(60_000)
    expect([backlog.bytes, backlog.take(), told, reasons]).toEqual([0, undefined, ['full'], []])
  })
})
