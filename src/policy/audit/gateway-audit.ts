/**
 * What is written down of calls: one line each on the hash-chained audit log, gathered into few commits. While the store cannot be
 * written they are kept, so many, and written later; what is lost is told. A crash loses at most the lines of the last moment; what was
 * decided (approvals, keys, grants) is written in the commit of the decision.
 */
import { Audit, type AuditFacts, type AuditLine, type AuditReadOptions, type AuditVerdict } from '../../core/audit/audit.ts'
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

/** How calls are written down. */
export interface GatewayAudit {
  /** How long lines are kept. Default 90 days. */
  readonly keep?: Duration
  /** How many at most, roughly. Default 1,000,000. */
  readonly lines?: number
  /** Arguments too, as far as a line holds them and without what looks like a secret. Default false: a digest of them. */
  readonly arguments?: boolean
  /** A call is made only when it is written that it begins: while nothing can be written, calls are refused. Default false. */
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
  /** The address from which it came, where nobody is known. */
  readonly from?: string | undefined
  /** How often, where one line is about many of a kind. */
  readonly times?: number | undefined
  /** Of what is no call of a tool: what was asked for, and by whom. */
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
    if (this.#audit === undefined) return
    if (this.#waiting.length + this.#lines.length >= mostWaiting) return this.#lose(1)
    this.#waiting.push({ note, at: this.#parts.clock.now() })
    this.#timer ??= this.#parts.clock.setTimeout(() => this.#write(), gatherMs, true)
  }

  /** Writes that a call begins; throws where that cannot be written, for then it must not. */
  async begun(note: Omit<GatewayNote, 'outcome'>): Promise<void> {
    const { store, clock } = this.#parts
    const audit = this.#audit
    if (audit === undefined) return
    try {
      const facts = await gatewayNoteFacts({ ...note, outcome: 'begun' }, this.#arguments)
      await store.commit([audit.line(facts, clock.now())])
    } catch (cause) {
      this.#parts.failed(cause)
      throw problem('SERVER_UNAVAILABLE', 'The call is not made, because it cannot be written down now', {
        suggestion: 'Try again soon; if it stays so, tell whoever runs the gateway that its store cannot be written',
        actor: 'operator',
        cause,
      })
    }
  }

  /** Reads and verifies the audit log. */
  get control() {
    const flushed = async (): Promise<Audit> => {
      await this.flush()
      if (this.#audit === undefined) throw new TypeError('Nothing is written down: audit is false')
      return this.#audit
    }
    return {
      read: async (options?: AuditReadOptions): Promise<readonly AuditLine[]> => (await flushed()).read(options),
      verify: async (): Promise<AuditVerdict> => (await flushed()).verify(),
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
    const message = `The audit log cannot be written: ${said}. Up to ${mostWaiting} lines are kept and written later`
    notice({ kind: 'audit-behind', message, fix: 'Look at the store' })
  }

  #caughtUp(): void {
    const lost = this.#lost
    this.#behind = false
    this.#lost = 0
    const message = `The audit log is written again; ${lost === 0 ? 'nothing of it was lost' : `${lost} lines of it were lost`}`
    this.#parts.notice({ kind: 'audit-caught-up', message, fix: lost === 0 ? 'Nothing is to be done' : 'Note the gap' })
  }

  /** Told when it begins, and how many it were when it is over. */
  #lose(count: number, over = false): void {
    const first = this.#lost === 0
    this.#lost += count
    if (!first && !over) return
    const message = over
      ? `The gateway ends, and ${this.#lost} lines of its audit log could not be written: they are lost`
      : `${mostWaiting} lines of the audit log wait to be written: from now on what is done is not written down`
    this.#parts.notice({ kind: 'audit-lost', message, fix: 'Look at the store; audit.must refuses calls that cannot be written' })
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

/** Of what is no call. */
function factsBeside(note: GatewayNote): AuditFacts {
  const { client, subject, upstream, tool, outcome, method, rule, code, by, correlation, from, times } = note
  const more = { client: said(client), subject, server: said(upstream), tool: said(tool), method, rule, code, by, from, times }
  return { event: 'noted', correlation, owner: '', target: tool, outcome, more }
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
