/**
 * What is written down of calls: one line each on the hash-chained audit log, gathered into few commits. A crash loses at most the
 * lines of the last moment; what was decided (approvals, keys, grants) is written in the commit of the decision.
 */
import { Audit, type AuditVerdict } from '../../core/audit/audit.ts'
import type { AuditFacts, AuditLine } from '../../core/audit/line.ts'
import type { Cancel, Clock } from '../../core/clock.ts'
import { toMilliseconds } from '../../core/duration.ts'
import type { Op, Store } from '../../stores/store.ts'
import type { TrustSettings } from './settings.ts'

export interface NotesParts {
  readonly store: Store
  readonly clock: Clock
  readonly audit: TrustSettings['audit']
  failed(error: unknown): void
}

/** One thing that happened at the gateway. */
export interface GatewayNote {
  /** Who it was for. */
  readonly client: string
  readonly upstream: string
  readonly tool: string
  readonly outcome: 'success' | 'failure' | 'refused' | 'held' | 'approved'
  readonly ms?: number | undefined
  readonly rule?: string | undefined
  /** The code of the problem. */
  readonly code?: string | undefined
  readonly correlation?: string | undefined
}

export interface AuditControl {
  read(options?: { readonly after?: number; readonly limit?: number }): Promise<readonly AuditLine[]>
  verify(): Promise<AuditVerdict>
}

const gatherMs = 50
const gathered = 500
/** Beyond that the oldest are written before anything new is taken. */
const mostWaiting = 20_000

export class Notes {
  readonly #parts: NotesParts
  readonly #audit: Audit | undefined
  #waiting: Op[] = []
  #timer: Cancel | undefined = undefined
  #writing: Promise<void> | undefined = undefined
  #dropped = 0

  constructor(parts: NotesParts) {
    this.#parts = parts
    if (parts.audit === false) return
    const { keep, lines } = typeof parts.audit === 'object' ? parts.audit : {}
    this.#audit = new Audit({
      store: parts.store,
      clock: parts.clock,
      failed: parts.failed,
      ...(keep !== undefined && { keepMs: toMilliseconds(keep, 'audit.keep') }),
      ...(lines !== undefined && { keep: lines }),
    })
  }

  note(note: GatewayNote): void {
    const audit = this.#audit
    if (audit === undefined) return
    if (this.#waiting.length >= mostWaiting) {
      this.#dropped++
      return
    }
    this.#waiting.push(audit.line(factsOf(note)))
    this.#timer ??= this.#parts.clock.setTimeout(() => this.#write(), gatherMs, true)
  }

  get control(): AuditControl {
    const opened = (): Audit => {
      if (this.#audit === undefined) throw new TypeError('Nothing is written down: audit is false')
      return this.#audit
    }
    return {
      read: async options => {
        await this.flush()
        return opened().read(options)
      },
      verify: async () => {
        await this.flush()
        return opened().verify()
      },
    }
  }

  /** Resolves when all that was noted lasts. */
  async flush(): Promise<void> {
    this.#write()
    await this.#writing
  }

  async close(): Promise<void> {
    await this.flush()
    await this.#audit?.close()
  }

  #write(): void {
    this.#timer?.()
    this.#timer = undefined
    this.#writing ??= this.#drain().finally(() => {
      this.#writing = undefined
    })
  }

  async #drain(): Promise<void> {
    const { store, failed } = this.#parts
    while (this.#waiting.length > 0) {
      const ops = this.#waiting.length <= gathered ? this.#waiting : this.#waiting.slice(0, gathered)
      this.#waiting = this.#waiting.length <= gathered ? [] : this.#waiting.slice(gathered)
      try {
        await store.commit(ops)
      } catch (error) {
        failed(error)
      }
    }
    if (this.#dropped > 0) failed(new Error(`${this.#dropped} notes were not written: the store is too slow`))
    this.#dropped = 0
  }
}

function factsOf({ client, upstream, tool, outcome, ms, rule, code, correlation }: GatewayNote): AuditFacts {
  const more = rule === undefined && code === undefined ? { client, ms } : { client, ms, rule, code }
  return { event: 'noted', correlation, owner: upstream, target: tool, outcome, more }
}
