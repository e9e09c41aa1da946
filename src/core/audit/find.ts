/** Lines of the audit log by what they say: since when, of whom, about what. */
import type { Position, Store } from '../../stores/store.ts'
import { lastPosition } from '../feed/last-position.ts'
import { type AuditLine, readLine } from './line.ts'

/** All that is given must hold. */
export interface AuditFilter {
  /** Milliseconds since the epoch. */
  readonly since?: number
  readonly until?: number
  readonly event?: string
  readonly outcome?: string
  /** As its lines call it: of `more`. */
  readonly client?: string
  readonly subject?: string
  readonly server?: string
  /** By the name that callers use, or by its own. */
  readonly tool?: string
}

const pageLines = 1_000
/** Lines are gathered before they are written, and clocks differ: so much later one may stand. */
const disorderMs = 60_000

export function fits(line: AuditLine, { since, until, event, outcome, tool, client, subject, server }: AuditFilter): boolean {
  const { at, target, more = {} } = line
  const said = (name: string, wanted: string | undefined): boolean => wanted === undefined || more[name] === wanted
  return (
    (since === undefined || at >= since) &&
    (until === undefined || at < until) &&
    (event === undefined || line.event === event) &&
    (outcome === undefined || line.outcome === outcome) &&
    (tool === undefined || target === tool || more['tool'] === tool) &&
    said('client', client) &&
    said('subject', subject) &&
    said('server', server)
  )
}

/** In the order in which they were written, from after a position on. Ends where what follows is too young. */
export async function* findLines(store: Store, log: string, filter: AuditFilter, from: Position): AsyncGenerator<AuditLine> {
  let after = filter.since === undefined ? from : Math.max(from, await before(store, log, filter.since - disorderMs))
  for (;;) {
    const page = (await store.read(log, { after, limit: pageLines })).map(readLine)
    for (const line of page) if (fits(line, filter)) yield line
    const last = page.at(-1)
    if (last === undefined || page.length < pageLines) return
    if (filter.until !== undefined && last.at > filter.until + disorderMs) return
    after = last.position
  }
}

/** A position before all lines of this time and later, by halves. */
async function before(store: Store, log: string, time: number): Promise<Position> {
  let [low, high] = [0, await lastPosition(store, log, 0)]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    const [entry] = await store.read(log, { after: middle - 1, limit: 1 })
    if (entry === undefined || readLine(entry).at >= time) high = middle
    else low = middle
  }
  return low
}
