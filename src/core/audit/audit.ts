/**
 * The audit log: decisions that matter, each written in the commit that makes it so. Beside it grows a chain of digests, each over
 * the lines since the one before and over that one: whoever changes, drops or inserts a line later breaks it from there on.
 */

import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { append, type LogEntry, type LogPosition, type Op, type Store, trim } from '../../stores/store.ts'
import type { Cancel, Clock } from '../clock.ts'
import { digestText } from '../digest.ts'
import { lastPosition } from '../feed/feed.ts'

/** Options of an audit log. */
export interface AuditLogOptions {
  readonly store: Store
  readonly clock: Clock
  /** How long lines are kept. Default 90 days. */
  readonly keepMs?: number
  /** How many at most, roughly. Default 1,000,000. */
  readonly keep?: number
  /** Told what keeps lines from being chained; it is tried again with the next ones. */
  readonly failed?: (error: unknown) => void
}

/** Which lines to read, and how many. */
export interface AuditReadOptions extends AuditFilter {
  /** Lines after this position; from the first one by default. */
  readonly after?: LogPosition
  /** Default 100, at most 1,000. */
  readonly limit?: number
}

/** What a look at the whole log found. */
export type AuditVerdict =
  /** `chained` is the last line that the chain covers, `head` its digest: kept elsewhere, it proves even a rewritten chain wrong. */
  | { readonly ok: true; readonly lines: number; readonly chained: LogPosition; readonly head: string }
  /** Up to `after` all is as it was written; what follows is not. */
  | { readonly ok: false; readonly after: LogPosition; readonly why: string }

const lines = 'audit'
const links = 'audit-chain'
/** Lines that one link covers, at most: a page of the store. */
const perLink = 1_000
/** Lines that are read and hashed at once: few enough to keep nobody waiting. */
const atOnce = 250
const chainMs = 1_000

/** The audit log of a store: appends lines in a chain of digests, reads them, checks the chain, and drops what is too old. */
export class Audit {
  readonly #options: AuditLogOptions
  #written = 0
  #known: LogPosition = 0
  #timer: Cancel | undefined = undefined
  #chaining: Promise<void> | undefined = undefined

  constructor(options: AuditLogOptions) {
    this.#options = options
  }

  /** The step that writes a line, for the commit of what it tells. `at`: when that was, where it is not now. */
  line(facts: AuditFacts, at?: number): Op {
    const { clock } = this.#options
    this.#written++
    this.#timer ??= clock.setTimeout(() => this.#chainSoon(), chainMs, true)
    return append(lines, writeLine(facts, at ?? clock.now()))
  }

  /** Writes what comes with no commit of its own. */
  async write(facts: AuditFacts): Promise<void> {
    await this.#options.store.commit([this.line(facts)])
  }

  /** Lines after a position, or from the oldest that is kept, as far as they fit. */
  async read({ after = 0, limit = 100, ...filter }: AuditReadOptions = {}): Promise<readonly AuditLine[]> {
    const most = Math.min(limit, 1_000)
    const { store } = this.#options
    if (Object.keys(filter).length === 0) return (await store.read(lines, { after, limit: most })).map(readLine)
    const found: AuditLine[] = []
    for await (const line of findLines(store, lines, filter, after)) {
      if (found.length >= most) break
      found.push(line)
    }
    return found
  }

  /** The same, one after the other and however many. */
  find(filter: AuditFilter = {}): AsyncIterable<AuditLine> {
    return findLines(this.#options.store, lines, filter, 0)
  }

  /** Chains what is not yet, then computes everything anew. */
  async verify(): Promise<AuditVerdict> {
    await this.chain()
    const { store } = this.#options
    let anchor: AuditChainLink | undefined
    let [count, at] = [0, 0]
    for (;;) {
      const page = await store.read(links, { after: at, limit: 100 })
      if (page.length === 0) break
      for (const entry of page) {
        const link = linkOf(entry.value)
        if (link === undefined || (at > 0 && entry.position !== at + 1)) return broken(anchor, 'the chain itself has a gap')
        // The oldest link that is kept stands for all that was forgotten with it.
        const since = anchor ?? (entry.position === 1 ? noLink : undefined)
        if (since !== undefined) {
          const covered = await this.#between(since.upto, link.upto)
          if (covered === undefined) return broken(since, 'lines are missing, or others were put between them')
          if ((await hashOf(since.hash, covered)) !== link.hash) return broken(since, 'a line is not what was written')
          count += covered.length
        }
        anchor = link
        at = entry.position
      }
    }
    return { ok: true, lines: count, chained: anchor?.upto ?? 0, head: anchor?.hash ?? '' }
  }

  /** Covers all lines that there are now, and forgets the oldest. What is written meanwhile waits for the next time. */
  chain(): Promise<void> {
    // One at a time; what the one under way has not seen any more is for the next.
    const next = (this.#chaining ?? Promise.resolve()).then(() => this.#chain())
    const settled = next.catch(() => undefined)
    this.#chaining = settled
    void settled.then(() => {
      if (this.#chaining === settled) this.#chaining = undefined
    })
    return next
  }

  async close(): Promise<void> {
    this.#timer?.()
    this.#timer = undefined
    if (this.#written > 0) await this.chain()
  }

  #chainSoon(): void {
    this.#timer = undefined
    this.chain().catch(error => this.#options.failed?.(error))
  }

  async #chain(): Promise<void> {
    const { store, clock } = this.#options
    for (;;) {
      this.#written = 0
      this.#known = await lastPosition(store, links, this.#known)
      const [last] = this.#known === 0 ? [] : await store.read(links, { after: this.#known - 1, limit: 1 })
      const before = last === undefined ? noLink : linkOf(last.value)
      if (before === undefined) throw new Error('A link of the audit chain cannot be read: was it written by another program?')
      const fresh = await store.read(lines, { after: before.upto, limit: atOnce })
      const upto = fresh.at(-1)?.position
      if (upto === undefined) return
      const link: AuditChainLink = { upto, at: clock.now(), hash: await hashOf(before.hash, fresh) }
      // At that place or not at all: where two processes chain at once, one looks again.
      const ops = [append(links, JSON.stringify(link), this.#known + 1), ...(await this.#forgetting(upto))]
      if ((await store.commit(ops)).ok && fresh.length < atOnce) return
    }
  }

  /** The oldest links whose time is over, all but the last of which the rest hangs on, go with their lines. */
  async #forgetting(upto: LogPosition): Promise<readonly Op[]> {
    const { store, clock, keepMs = 90 * 86_400_000, keep = 1_000_000 } = this.#options
    const oldest = (await store.read(links, { limit: 100 })).map(({ position, value }) => ({ position, link: linkOf(value) }))
    const over = oldest
      .filter(({ link }) => link !== undefined && (link.at <= clock.now() - keepMs || link.upto <= upto - keep))
      .at(-1)
    if (over?.link === undefined) return []
    return [trim(lines, over.link.upto + 1), trim(links, over.position)]
  }

  /** The lines after one position up to another; undefined where one is missing. */
  async #between(after: LogPosition, upto: LogPosition): Promise<readonly LogEntry[] | undefined> {
    const found = upto - after > perLink ? [] : await this.#options.store.read(lines, { after, limit: upto - after })
    const whole = found.length === upto - after && found.every(({ position }, i) => position === after + 1 + i)
    return whole ? found : undefined
  }
}

const noLink: AuditChainLink = { upto: 0, at: 0, hash: '' }

function hashOf(before: string, covered: readonly LogEntry[]): Promise<string> {
  return digestText(`${before}\n${JSON.stringify(covered.map(({ value }) => value))}`)
}

function broken(since: AuditChainLink | undefined, why: string): AuditVerdict {
  return { ok: false, after: since?.upto ?? 0, why }
}

// Lines of the audit log by what they say: since when, of whom, about what.

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

function fits(line: AuditLine, { since, until, event, outcome, tool, client, subject, server }: AuditFilter): boolean {
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
async function* findLines(store: Store, log: string, filter: AuditFilter, from: LogPosition): AsyncGenerator<AuditLine> {
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

// One line of the audit log, and one link of the chain over it.

/** What is written down. */
type AuditEvent =
  /** At a gateway; `call_settled` is that of a call under a key. */
  | 'call_begun'
  | 'call_ended'
  | 'call_settled'
  | 'step_ended'
  | 'step_undone'
  | 'transaction_ended'
  | 'confirmation_given'
  | 'confirmation_refused'
  /** By whoever looks at what stands in line. */
  | 'confirmation_answered'
  | 'grant_given'
  | 'grant_revoked'
  /** Something that a host did, or would not do. */
  | 'noted'

/** What a line of the audit log says, before it has its place in the log. */
export interface AuditFacts {
  /** What happened. */
  readonly event: AuditEvent
  /** Joins the line with the operation, the log and the problem of the same request. */
  readonly correlation?: string | undefined
  /** The key of the principal. */
  readonly owner: string
  /** The tool, the transaction or the grant. */
  readonly target: string
  /** How it ended. */
  readonly outcome?: string | undefined
  /** Small facts beside it; never arguments or results. */
  readonly more?: Readonly<Record<string, string | number | undefined>> | undefined
}

/** A line of the audit log, with its place, its time and its link to the line before. */
export interface AuditLine extends AuditFacts {
  /** Its place in the log. */
  readonly position: LogPosition
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** A digest over all lines up to one. */
interface AuditChainLink {
  readonly upto: LogPosition
  readonly at: number
  readonly hash: string
}

/** Of one text. */
const longest = 512

/** The JSON of texts that come again and again: names, outcomes, owners. */
const texts = new Map<string, string>()
const mostTexts = 1_000
const mostRepeated = 35

/** One is written for each call of a gateway: put together of what was written before. */
export function writeLine({ event, correlation, owner, target, outcome, more }: AuditFacts, at: number): string {
  let line = `{"at":${at},"event":"${event}"`
  if (correlation !== undefined) line += `,"correlation":${JSON.stringify(correlation)}`
  line += `,"owner":${textOf(owner)},"target":${textOf(clip(target, longest))}`
  if (outcome !== undefined) line += `,"outcome":${textOf(outcome)}`
  return more === undefined ? `${line}}` : `${line},"more":{${membersOf(more)}}}`
}

function membersOf(more: NonNullable<AuditFacts['more']>): string {
  let members = ''
  for (const name in more) {
    const value = more[name]
    if (value === undefined) continue
    const text = typeof value === 'string' ? textOf(clip(value, longest)) : JSON.stringify(value)
    members += `${members === '' ? '' : ','}${textOf(name)}:${text}`
  }
  return members
}

function textOf(value: string): string {
  const known = texts.get(value)
  if (known !== undefined) return known
  const text = JSON.stringify(value)
  // Ids and digests come once each: they would only push out what comes again.
  if (value.length > mostRepeated) return text
  if (texts.size >= mostTexts) texts.clear()
  texts.set(value, text)
  return text
}

/** The line that an entry of the log holds. Throws where it holds none. */
export function readLine({ position, value }: LogEntry): AuditLine {
  const line: unknown = JSON.parse(value)
  if (isRecord(line) && typeof line['event'] === 'string' && typeof line['at'] === 'number')
    return { ...(line as unknown as AuditLine), position }
  throw new Error('A line of the audit log cannot be read: was it written by another program?')
}

/** Undefined where it is none. */
export function linkOf(text: string): AuditChainLink | undefined {
  try {
    const link: unknown = JSON.parse(text)
    if (!isRecord(link) || typeof link['hash'] !== 'string') return undefined
    return [link['upto'], link['at']].every(Number.isSafeInteger) ? (link as unknown as AuditChainLink) : undefined
  } catch {
    return undefined
  }
}
