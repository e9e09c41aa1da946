/**
 * The audit log: decisions that matter, each written in the commit that makes it so. Beside it grows a chain of digests, each over
 * the lines since the one before and over that one: whoever changes, drops or inserts a line later breaks it from there on.
 */

import { append, type LogEntry, type LogPosition, type Op, type Store, trim } from '../../stores/store.ts'
import type { Cancel, Clock } from '../clock.ts'
import { digestText } from '../digest.ts'
import { lastPosition } from '../feed/feed.ts'
import { type AuditChainLink, type AuditFacts, type AuditLine, linkOf, readLine, writeLine } from './line.ts'
import { type AuditFilter, type AuditSearchOptions, type AuditSearchResult, findLines, searchLines } from './search.ts'

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

/** Which lines to read. */
export interface AuditReadOptions extends AuditFilter {
  /** Reads lines after this position. Default: from the oldest line. */
  readonly after?: LogPosition
  /** The most lines. Default 100, at most 1,000. */
  readonly limit?: number
}

/** How a check of the chain is followed. */
export interface AuditVerifyOptions {
  /** Called after each link with the number of checked lines and of all lines. */
  readonly onProgress?: (done: number, total: number) => void
  /** Ends the check early. */
  readonly signal?: AbortSignal
}

/** Reads and verifies an audit log. */
export interface AuditControl {
  /** Reads lines after a position, or from the oldest line that is kept. Default 100 lines, at most 1,000. */
  read(options?: AuditReadOptions): Promise<readonly AuditLine[]>
  /** Verifies that no line was changed or removed since it was written. */
  verify(options?: AuditVerifyOptions): Promise<AuditVerdict>
}

/**
 * The result of verifying an audit log. If it is intact, `head` is the digest of its last line: stored elsewhere, it also reveals
 * a chain that was rewritten as a whole.
 */
export type AuditVerdict =
  /** `chained` is the last line that the chain covers, `head` its digest: kept elsewhere, it proves even a rewritten chain wrong. */
  | {
      /** Whether all lines are unchanged. */
      readonly ok: true
      /** How many lines were checked. */
      readonly lines: number
      /** The position of the last line that the chain covers. */
      readonly chained: LogPosition
      /** The digest of that line. */
      readonly head: string
    }
  /** Up to `after` all is as it was written; what follows is not. */
  | {
      /** Whether all lines are unchanged. */
      readonly ok: false
      /** The position of the last line that is unchanged. */
      readonly after: LogPosition
      /** What is wrong after it, in a sentence. */
      readonly why: string
    }

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

  /** Newest first, in pages; see `searchLines`. */
  search(options?: AuditSearchOptions): Promise<AuditSearchResult> {
    return searchLines(this.#options.store, lines, options)
  }

  /** Chains what is not yet, then computes everything anew. */
  async verify({ onProgress, signal }: AuditVerifyOptions = {}): Promise<AuditVerdict> {
    await this.chain()
    const { store } = this.#options
    const all = onProgress === undefined ? 0 : await lastPosition(store, lines, 0)
    let anchor: AuditChainLink | undefined
    let [count, at] = [0, 0]
    for (;;) {
      const page = await store.read(links, { after: at, limit: 100 })
      if (page.length === 0) break
      for (const entry of page) {
        signal?.throwIfAborted()
        const link = linkOf(entry.value)
        if (link === undefined || (at > 0 && entry.position !== at + 1)) return broken(anchor, 'the hash chain has a gap')
        // The oldest link that is kept stands for all that was forgotten with it.
        const since = anchor ?? (entry.position === 1 ? noLink : undefined)
        if (since !== undefined) {
          const covered = await this.#between(since.upto, link.upto)
          if (covered === undefined) return broken(since, 'lines are missing or were inserted')
          if ((await hashOf(since.hash, covered)) !== link.hash) return broken(since, 'a line was changed')
          count += covered.length
          onProgress?.(count, count + Math.max(0, all - link.upto))
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
      if (before === undefined)
        throw new Error('A link of the audit chain does not have the expected form. Another program may have written it')
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
