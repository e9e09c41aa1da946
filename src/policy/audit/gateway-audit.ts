/**
 * What is written down of calls: one line each on the hash-chained audit log, gathered into few commits. While the store cannot be
 * written they are kept, so many, and written later; what is lost is told. A crash loses at most the lines of the last moment; what was
 * decided (approvals, keys, grants) is written in the commit of the decision.
 */
import { Audit, type AuditControl } from '../../core/audit/audit.ts'
import type { AuditFacts } from '../../core/audit/line.ts'
import type { AuditSearchOptions, AuditSearchResult } from '../../core/audit/search.ts'
import { type Cancel, type Clock, type Duration, toMilliseconds } from '../../core/clock.ts'
import { digestSoon } from '../../core/digest.ts'
import { cleanFields, knownSecrets } from '../../core/log.ts'
import { problem } from '../../core/problem.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { ownerOf } from '../../engine/owner.ts'
import type { Caller } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { type Awaitable, isRecord, isThenable } from '../../jsonrpc/message.ts'
import type { Op, Store } from '../../stores/store.ts'

// What is written down of calls: one line each on the hash-chained audit log, gathered into few commits. While the store cannot be
// written they are kept, so many, and written later; what is lost is told. A crash loses at most the lines of the last moment; what was
// decided (approvals, keys, grants) is written in the commit of the decision.

/** What the audit log holds. */
export interface GatewayAudit {
  /**
   * How long entries are kept.
   * @default 90d
   */
  readonly keep?: Duration
  /**
   * How many entries are kept at most; the number is approximate.
   * @default 1000000
   */
  readonly lines?: number
  /**
   * Whether entries hold the arguments of calls, without values that look like secrets. Otherwise they hold a digest of them.
   * @default false
   */
  readonly arguments?: boolean
  /**
   * Whether a call is executed only after its entry was written. If entries cannot be written, calls are then refused.
   * @default false
   */
  readonly must?: boolean
}

interface NotesParts {
  readonly store: Store
  readonly clock: Clock
  readonly audit: boolean | GatewayAudit | undefined
  /** Tells whoever runs the gateway. */
  notice(said: {
    readonly kind: 'audit-behind' | 'audit-lost' | 'audit-caught-up'
    readonly message: string
    readonly fix: string
  }): void
  failed(error: unknown): void
  /** Told each entry at once, also where none are written. */
  readonly onEntry?: ((entry: GatewayAuditEntry) => void) | undefined
}

/** An entry of the audit log as it is made: before it is stored, and without the arguments of its call. */
export type GatewayAuditEntry = Omit<AuditFacts, 'owner'> & {
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** One thing that happened at the gateway. */
export interface GatewayNote {
  /** Who it was for. */
  readonly client: string
  readonly upstream: string
  /** Its own name at its server. */
  readonly tool: string
  /** `replayed`: it was done before, and is answered by what came of that. */
  readonly outcome: 'begun' | 'success' | 'failure' | 'refused' | 'replayed' | 'held' | 'approved'
  readonly ms?: number | undefined
  readonly rule?: string | undefined
  /** The code of the problem. */
  readonly code?: string | undefined
  readonly correlation?: string | undefined
  /** Who has decided it. */
  readonly by?: string | undefined
  /** The id of the approval that was answered. */
  readonly approval?: string | undefined
  /** Why it was answered so. */
  readonly reason?: string | undefined
  /** The address from which it came, where nobody is known. */
  readonly from?: string | undefined
  /** How often, where one line is about many of a kind. */
  readonly times?: number | undefined
  /** For an entry that is not a tool call: what was requested, and by whom. */
  readonly method?: string | undefined
  readonly subject?: string | undefined
  /** The call that it is about: whose it is, by which name, and with what. */
  readonly exchange?: Exchange | undefined
}

const gatherMs = 50
const gathered = 500
/** That many are kept while they cannot be written. */
const mostWaiting = 20_000
/** How soon it is tried again. */
const againMs = 1_000

/** An audit log as settings say. */
export function auditIn(
  store: Store,
  clock: Clock,
  said: boolean | GatewayAudit | undefined,
  failed: (error: unknown) => void,
): Audit {
  const { keep, lines } = typeof said === 'object' ? said : {}
  return new Audit({
    store,
    clock,
    failed,
    ...(keep !== undefined && { keepMs: toMilliseconds(keep, 'audit.keep') }),
    ...(lines !== undefined && { keep: lines }),
  })
}

/** Writes the audit log of a gateway, in batches, and keeps lines while the store is unavailable. */
export class GatewayAuditLog {
  readonly #parts: NotesParts
  readonly #audit: Audit | undefined
  readonly #arguments: boolean
  /** A call begins only when that is written. */
  readonly must: boolean
  #waiting: { readonly note: GatewayNote; readonly at: number }[] = []
  /** Put together, in their order, and not yet written. */
  #lines: Op[] = []
  #timer: Cancel | undefined = undefined
  #writing: Promise<void> | undefined = undefined
  /** Since the store cannot be written. */
  #behind = false
  #lost = 0

  constructor(parts: NotesParts) {
    this.#parts = parts
    const { audit } = parts
    const said = typeof audit === 'object' ? audit : {}
    this.#arguments = said.arguments === true
    this.must = said.must === true
    if (audit !== false) this.#audit = auditIn(parts.store, parts.clock, audit, parts.failed)
  }

  note(note: GatewayNote): void {
    this.tell(note)
    if (this.#audit === undefined) return
    if (this.#waiting.length + this.#lines.length >= mostWaiting) return this.#lose(1)
    this.#waiting.push({ note, at: this.#parts.clock.now() })
    this.#timer ??= this.#parts.clock.setTimeout(() => this.#write(), gatherMs, true)
  }

  /** Writes that a call begins; throws where that cannot be written, for then it must not. */
  async begun(note: Omit<GatewayNote, 'outcome'>): Promise<void> {
    this.tell({ ...note, outcome: 'begun' })
    const { store, clock } = this.#parts
    const audit = this.#audit
    if (audit === undefined) return
    try {
      const facts = await gatewayNoteFacts({ ...note, outcome: 'begun' }, this.#arguments)
      await store.commit([audit.line(facts, clock.now())])
    } catch (cause) {
      this.#parts.failed(cause)
      throw problem('SERVER_UNAVAILABLE', 'The call was not made, because the audit log could not be written', {
        suggestion: 'Retry in a few seconds. If the error persists, ask the operator of the gateway to check its store',
        actor: 'operator',
        cause,
      })
    }
  }

  /** Reads and verifies the audit log. */
  get control(): GatewayAuditControl {
    const flushed = async (): Promise<Audit> => {
      await this.flush()
      if (this.#audit === undefined) throw new TypeError('The gateway has no audit log, because audit is false')
      return this.#audit
    }
    return {
      read: async options => (await flushed()).read(options),
      search: async options => (await flushed()).search(options),
      verify: async options => (await flushed()).verify(options),
      note: ({ upstream = '', tool = '', ...rest }) => this.note({ ...rest, client: '', upstream, tool }),
    }
  }

  /** Tells whoever listens, and writes nothing. */
  tell(note: GatewayNote): void {
    const { onEntry, clock, failed } = this.#parts
    try {
      onEntry?.(entryOf(note, clock.now()))
    } catch (error) {
      // A listener that fails must not fail the call.
      failed(error)
    }
  }

  /** Resolves when all that was noted lasts, or cannot be written now. */
  async flush(): Promise<void> {
    await this.#writing
    this.#write()
    await this.#writing
  }

  async close(): Promise<void> {
    await this.flush()
    this.#timer?.()
    if (this.#lines.length > 0) this.#lose(this.#lines.length, true)
    await this.#audit?.close().catch(this.#parts.failed)
  }

  #write(): void {
    this.#timer?.()
    this.#timer = undefined
    this.#writing ??= this.#drain().finally(() => {
      this.#writing = undefined
    })
  }

  async #drain(): Promise<void> {
    const { store } = this.#parts
    for (;;) {
      await this.#assemble()
      if (this.#lines.length === 0) break
      const ops = this.#lines.length <= gathered ? this.#lines : this.#lines.slice(0, gathered)
      try {
        await store.commit(ops)
      } catch (error) {
        return this.#fellBehind(error)
      }
      this.#lines = this.#lines.slice(ops.length)
    }
    if (this.#behind) this.#caughtUp()
  }

  /** At once, whether it can be written or not: a line is smaller than what it is about. */
  async #assemble(): Promise<void> {
    const audit = this.#audit
    const waiting = this.#waiting
    this.#waiting = []
    if (audit === undefined) return
    for (const { note, at } of waiting) {
      const facts = gatewayNoteFacts(note, this.#arguments)
      this.#lines.push(audit.line(isThenable(facts) ? await facts : facts, at))
    }
  }

  #fellBehind(error: unknown): void {
    const { clock, notice, failed } = this.#parts
    failed(error)
    this.#timer ??= clock.setTimeout(() => this.#write(), againMs, true)
    if (this.#behind) return
    this.#behind = true
    const said = clip(error instanceof Error ? error.message : String(error), 200)
    const message = `The audit log cannot be written: ${said}. Up to ${mostWaiting} lines are kept in memory and written later`
    notice({ kind: 'audit-behind', message, fix: 'Check the store' })
  }

  #caughtUp(): void {
    const lost = this.#lost
    this.#behind = false
    this.#lost = 0
    const message = `The audit log is written again. ${lost === 0 ? 'No lines were lost' : `${lost} lines were lost`}`
    this.#parts.notice({
      kind: 'audit-caught-up',
      message,
      fix: lost === 0 ? 'No action is needed' : 'Note the gap in the audit log',
    })
  }

  /** Told when it begins, and how many it were when it is over. */
  #lose(count: number, over = false): void {
    const first = this.#lost === 0
    this.#lost += count
    if (!first && !over) return
    const message = over
      ? `The gateway is shutting down. ${this.#lost} lines of its audit log could not be written and are lost`
      : `${mostWaiting} lines of the audit log wait to be written (the limit). Further lines are lost`
    this.#parts.notice({
      kind: 'audit-lost',
      message,
      fix: 'Check the store. With audit.must, calls that cannot be audited are refused',
    })
  }
}

// The line of a note. Fields mean the same in all lines: `owner` is the key of who called, `target` the name that was called; of `more`
// `client` and `subject` say who that is, `server` and `tool` where it went and what it is called there, `by` who decided.

/** `whole`: with the arguments themselves, as far as a line holds them, and without what looks like a secret. */
export function gatewayNoteFacts(note: GatewayNote, whole: boolean): Awaitable<AuditFacts> {
  const { exchange } = note
  if (exchange === undefined) return factsBeside(note)
  const args = exchange.params['arguments']
  const given = isRecord(args) && Object.keys(args).length > 0 ? args : undefined
  const owner = ownerOf(exchange)
  const digest = given === undefined ? undefined : digestSoon(given)
  const shown = whole && given !== undefined ? shownOf(exchange, given) : undefined
  // Nearly all is known at once: one line is written for each call.
  if (!isThenable(owner) && !isThenable(digest)) return factsIn(note, exchange, owner, digest, shown)
  return Promise.all([owner, digest]).then(([key, hash]) => factsIn(note, exchange, key, hash, shown))
}

/** Reads, searches and verifies the audit log of a gateway, and writes what its operator does. */
export interface GatewayAuditControl extends AuditControl {
  /** Finds lines, newest first, in pages. */
  search(options?: AuditSearchOptions): Promise<AuditSearchResult>
  /** Writes an entry about something that the operator did. Nothing is written where `audit` is false. */
  note(action: OperatorAction): void
}

/** Something that the operator did, for the audit log. */
interface OperatorAction extends Pick<GatewayNote, 'outcome' | 'method' | 'by' | 'code' | 'approval' | 'reason' | 'times'> {
  /** The upstream that it is about. */
  readonly upstream?: string
  /** The tool that it is about. */
  readonly tool?: string
}

/** Of what is no call. */
function factsBeside(note: GatewayNote): AuditFacts {
  const { client, subject, upstream, tool, outcome, method, rule, code, by, approval, reason, correlation, from, times } = note
  const who = { client: said(client), subject, server: said(upstream), tool: said(tool), method }
  const more = { ...who, rule, code, by, approval, reason, from, times }
  return { event: 'noted', correlation, owner: '', target: tool, outcome, more }
}

/** The same facts for whoever listens, as far as they are known at once. */
function entryOf(note: GatewayNote, at: number): GatewayAuditEntry {
  const { exchange, outcome, ms, times } = note
  if (exchange === undefined) {
    const { owner: _, ...facts } = factsBeside(note)
    return { ...facts, at }
  }
  const { more, ...facts } = factsIn(note, exchange, '', undefined, undefined)
  return { at, event: facts.event, correlation: facts.correlation, target: facts.target, outcome, more: { ...more, ms, times } }
}

function factsIn(
  { client, upstream, tool, outcome, ms, rule, code, by, correlation }: GatewayNote,
  { caller, params, correlated }: Exchange,
  owner: string,
  digest: string | undefined,
  shown: string | undefined,
): AuditFacts {
  const subject = subjectOf(caller)
  const input_digest = digest === undefined ? undefined : `sha256:${digest}`
  return {
    event: outcome === 'begun' ? 'call_begun' : 'call_ended',
    correlation: correlation ?? correlated,
    owner,
    target: String(params['name'] ?? params['uri'] ?? tool),
    outcome,
    more: { client, subject, server: said(upstream), tool, ms, rule, code, by, input_digest, arguments: shown },
  }
}

function said(text: string): string | undefined {
  return text === '' ? undefined : text
}

function shownOf({ caller }: Exchange, args: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(cleanFields(args, knownSecrets(caller)))
}

/** Whom a caller's token is about; undefined where it has none. */
export function subjectOf({ principal }: Pick<Caller, 'principal'>): string | undefined {
  return principal?.subject ?? principal?.id
}
