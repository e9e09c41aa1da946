/** Lines of the audit log by what they say: since when, of whom, about what; oldest first or newest first. */
import type { LogPosition, Store } from '../../stores/store.ts'
import { lastPosition } from '../feed/feed.ts'
import { type AuditLine, readLine } from './line.ts'

/** Selects lines. All given conditions must hold. */
export interface AuditFilter {
  /** Lines from this time on, in milliseconds since the epoch. */
  readonly since?: number
  /** Lines before this time, in milliseconds since the epoch. */
  readonly until?: number
  /** Lines of this event, for example `call_ended`. */
  readonly event?: string
  /** Lines with this outcome. */
  readonly outcome?: string
  /** Lines of this client, as `more` names it. */
  readonly client?: string
  /** Lines of this token subject. */
  readonly subject?: string
  /** Lines of this server. */
  readonly server?: string
  /** Lines with this target. */
  readonly target?: string
  /** Lines of this owner. */
  readonly owner?: string
  /** Lines of this tool, by the name that callers use or by its own name. */
  readonly tool?: string
  /** Lines of this request. */
  readonly correlation?: string
  /** Lines that name this rule. */
  readonly rule?: string
  /** Lines with this code of a problem. */
  readonly code?: string
  /** Lines of what this person decided. */
  readonly by?: string
  /** Any text of the line holds it, without regard to case. */
  readonly text?: string
}

/** Which lines to look for, newest first. */
export interface AuditSearchOptions extends AuditFilter {
  /** Only lines before this position. */
  readonly before?: LogPosition
  /** Default 100, at most 1,000. */
  readonly limit?: number
}

/** What a search found. */
export interface AuditSearchResult {
  /** Newest first. */
  readonly items: readonly AuditLine[]
  /** Give it as `before` to look on; absent where all was looked through. */
  readonly next?: LogPosition
}

/** Lines that one search looks through, so that nobody waits for a rare one in a long log. */
const mostSearched = 20_000
const pageLines = 1_000
/** Lines are gathered before they are written, and clocks differ: so much later one may stand. */
const disorderMs = 60_000

function fits(line: AuditLine, filter: AuditFilter): boolean {
  const { since, until, event, outcome, tool, client, subject, server, correlation, rule, code, by, text, owner } = filter
  const isTarget = filter.target === undefined || filter.target === line.target
  const { at, target, more = {} } = line
  const said = (name: string, wanted: string | undefined): boolean => wanted === undefined || more[name] === wanted
  return (
    (since === undefined || at >= since) &&
    (until === undefined || at < until) &&
    (event === undefined || line.event === event) &&
    (outcome === undefined || line.outcome === outcome) &&
    (tool === undefined || target === tool || more['tool'] === tool) &&
    isTarget &&
    (owner === undefined || line.owner === owner) &&
    said('client', client) &&
    said('subject', subject) &&
    said('server', server) &&
    said('rule', rule) &&
    said('code', code) &&
    said('by', by) &&
    (correlation === undefined || line.correlation === correlation) &&
    (text === undefined || holds(line, text.toLowerCase()))
  )
}

function holds({ target, event, outcome = '', correlation = '', more = {} }: AuditLine, text: string): boolean {
  const all = [target, event, outcome, correlation, ...Object.values(more)]
  return all.some(each => String(each).toLowerCase().includes(text))
}

/** In the order in which they were written, from after a position on. Ends where what follows is too young. */
export async function* findLines(store: Store, log: string, filter: AuditFilter, from: LogPosition): AsyncGenerator<AuditLine> {
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
async function before(store: Store, log: string, time: number): Promise<LogPosition> {
  let [low, high] = [0, await lastPosition(store, log, 0)]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    const [entry] = await store.read(log, { after: middle - 1, limit: 1 })
    if (entry === undefined || readLine(entry).at >= time) high = middle
    else low = middle
  }
  return low
}

/**
 * Newest first. Looks through so many lines at most: where there is a `next`, give it as `before` to look on, also where nothing was found
 * yet.
 */
export async function searchLines(
  store: Store,
  log: string,
  { before: end, limit = 100, ...filter }: AuditSearchOptions = {},
): Promise<AuditSearchResult> {
  const most = Math.min(limit, 1_000)
  const items: AuditLine[] = []
  let below = end ?? (await lastPosition(store, log, 0)) + 1
  for (let scanned = 0; below > 1 && scanned < mostSearched; scanned += pageLines) {
    const after = Math.max(0, below - 1 - pageLines)
    const page = (await store.read(log, { after, limit: below - 1 - after })).filter(({ position }) => position < below)
    // What is older was dropped.
    if (page.length === 0) return { items }
    for (const line of page.reverse().map(readLine)) {
      if (filter.since !== undefined && line.at < filter.since - disorderMs) return { items }
      if (!fits(line, filter)) continue
      if (items.length === most) return { items, next: line.position + 1 }
      items.push(line)
    }
    below = after + 1
  }
  return below > 1 ? { items, next: below } : { items }
}
