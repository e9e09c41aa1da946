import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { httpLimits } from './limits.ts'
import { LogBounds, type LogPart } from './log-bounds.ts'

interface Append {
  readonly account: number
  readonly session: number
  readonly stream: number
  readonly bytes: number
}

const appends = fc.array(
  fc.record({ account: fc.nat(2), session: fc.nat(2), stream: fc.nat(2), bytes: fc.integer({ min: 1, max: 40 }) }),
  { maxLength: 120 },
)
const none = Number.POSITIVE_INFINITY
const unlimited = {
  ...httpLimits,
  logEvents: none,
  logBytes: none,
  logSessionEvents: none,
  logSessionBytes: none,
  logTotal: none,
}

function world(limits: Partial<typeof httpLimits>) {
  const removed: LogPart[] = []
  const bounds = new LogBounds<LogPart>({ ...unlimited, ...limits }, part => removed.push(part))
  const streams = new Map<string, readonly [session: string, stream: string]>()
  let last = 0
  const append = ({ account, session, stream, bytes }: Append): LogPart => {
    const names = [`${account} ${session}`, `${stream}`] as const
    streams.set(names.join(), names)
    const log = bounds.open(...names, `=${account}`)
    const part = { bytes, events: 1, last: ++last, at: last }
    bounds.freeCapacity(log, bytes, 1)
    bounds.add(log, part)
    return part
  }
  const kept = (): readonly LogPart[] => [...streams.values()].flatMap(names => bounds.get(...names)?.parts ?? [])
  const bytes = (): number => kept().reduce((sum, part) => sum + part.bytes, 0)
  return { append, kept, bytes, bounds, removed, streams }
}

describe('the bounds of stream logs', () => {
  it('hold for the total after each event, apart from the newest one, which stays', () => {
    fc.assert(
      fc.property(appends, all => {
        const { append, kept, bytes } = world({ logTotal: 100 })
        for (const each of all) {
          const part = append(each)
          expect(kept()).toContain(part)
          expect(bytes() - part.bytes).toBeLessThanOrEqual(100)
        }
      }),
    )
  })

  it('take nothing from an account that holds no more than its part of the total', () => {
    fc.assert(
      fc.property(appends, all => {
        const { append, kept } = world({ logTotal: 300 })
        const mine = new Map<number, LogPart[]>()
        for (const each of all) mine.set(each.account, [...(mine.get(each.account) ?? []), append(each)])
        const left = kept()
        for (const parts of mine.values())
          if (parts.reduce((sum, part) => sum + part.bytes, 0) <= 100) for (const part of parts) expect(left).toContain(part)
      }),
    )
  })

  it('hold for a session and a stream, each of which keeps its newest events', () => {
    fc.assert(
      fc.property(appends, all => {
        const { append, bounds, streams } = world({ logEvents: 4, logSessionEvents: 8 })
        for (const each of all) append(each)
        for (const [session] of streams.values()) {
          const logs = [0, 1, 2].flatMap(stream => bounds.get(session, `${stream}`) ?? [])
          expect(logs.reduce((sum, { parts }) => sum + parts.length, 0)).toBeLessThanOrEqual(8)
          for (const { parts } of logs) expect(parts.length).toBeGreaterThan(0)
          for (const { parts } of logs) expect(parts.length).toBeLessThanOrEqual(4)
        }
      }),
    )
  })

  it('count nothing any more of what is dropped or expired', () => {
    fc.assert(
      fc.property(appends, all => {
        const { append, bounds, removed, kept, streams } = world({ logTotal: 400 })
        for (const each of all) append(each)
        const before = removed.length
        bounds.expire(none)
        expect(kept()).toEqual([])
        for (const [session] of streams.values()) bounds.dropSession(session)
        for (let n = 0; n < 10; n++) append({ account: n % 3, session: 0, stream: 0, bytes: 40 })
        expect(kept()).toHaveLength(10)
        expect(removed).toHaveLength(before)
      }),
    )
  })
})
