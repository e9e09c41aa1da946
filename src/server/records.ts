/** What the reliability features write into, one of each for all of them, opened when first needed: the journal, grants, the audit log. */
import type { Audit, AuditReadOptions, AuditVerdict } from '../core/audit/audit.ts'
import type { AuditLine } from '../core/audit/line.ts'
import type { Clock } from '../core/clock.ts'
import { toMilliseconds } from '../core/duration.ts'
import type { Grants } from '../core/grant/grants.ts'
import type { Journal } from '../core/journal/journal.ts'
import type { Trace } from '../core/log.ts'
import type { ServerOptions } from './options.ts'
import type { LazyStore } from './store.ts'

export interface Records {
  readonly journal: () => Promise<Journal>
  readonly grants: () => Promise<Grants>
  /** Undefined where there is none: what ends with the process proves nothing. */
  readonly audit: () => Promise<Audit | undefined>
  close(): Promise<void>
}

/** The audit log: decisions that matter, each written with what it decided. */
export interface AuditControl {
  /** Lines after a position, or from the oldest that is kept, as far as they fit; 100 unless told otherwise, 1,000 at most. */
  read(options?: AuditReadOptions): Promise<readonly AuditLine[]>
  /** Whether all lines are as they were written. */
  verify(): Promise<AuditVerdict>
}

export function openRecords(options: ServerOptions, store: LazyStore, clock: Clock, trace: Trace): Records {
  const id = (): string => crypto.randomUUID()
  const notChained = (error: unknown): void => trace('audit-not-chained', error)
  const log = lazily(async () => {
    const [{ Audit: Log }, opened] = await Promise.all([import('../core/audit/audit.ts'), store.open()])
    const { keep, lines } = options.audit || {}
    const keepMs = keep === undefined ? {} : { keepMs: toMilliseconds(keep, 'audit.keep') }
    return new Log({ store: opened, clock, failed: notChained, ...keepMs, ...(lines === undefined ? {} : { keep: lines }) })
  })
  const audit = async (): Promise<Audit | undefined> =>
    options.store === undefined || options.audit === false ? undefined : log.open()
  const journal = lazily(async () => {
    const [{ createJournal }, opened, told] = await Promise.all([import('../core/journal/journal.ts'), store.open(), audit()])
    const { records, length } = options.idempotency ?? {}
    return createJournal({ store: opened, clock, records, length, audit: told })
  })
  const grants = lazily(async () => {
    const [{ Grants: Book }, opened, told] = await Promise.all([import('../core/grant/grants.ts'), store.open(), audit()])
    return new Book({ store: opened, clock, id, audit: told })
  })
  return {
    audit,
    journal: journal.open,
    grants: grants.open,
    close: async () => {
      ;(await journal.opened())?.close()
      await (await log.opened())?.close().catch(notChained)
    },
  }
}

export function auditControl(open: Records['audit']): AuditControl {
  const opened = async (): Promise<Audit> => {
    const audit = await open()
    if (audit === undefined) throw new TypeError('There is an audit log where the server has a store, and audit is not false')
    return audit
  }
  return {
    read: async options => (await opened()).read(options),
    verify: async () => (await opened()).verify(),
  }
}

/** What could not be opened now may be there for the next call. */
function lazily<T>(make: () => Promise<T>): { open(): Promise<T>; opened(): Promise<T | undefined> } {
  let opening: Promise<T> | undefined
  return {
    open: () => {
      opening ??= make().catch(error => {
        opening = undefined
        throw error
      })
      return opening
    },
    opened: async () => opening?.catch(() => undefined),
  }
}
