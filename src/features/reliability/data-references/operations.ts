/**
 * Imports that take longer than a response may: they continue in the background and are queried by id. If their process has ended, the
 * next query resumes them.
 */
import type { Clock } from '../../../core/clock.ts'
import type { ProcessLeases } from '../../../core/journal/process-leases.ts'
import { problem, problemOf } from '../../../core/problem.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { type Entry, put, type Store } from '../../../stores/store.ts'
import { toWire } from '../problem/messages.ts'
import type { DataReference, WireImport } from './messages.ts'

interface OperationsParts {
  readonly store: Store
  readonly clock: Clock
  /** Knows which processes are alive. */
  readonly runners: ProcessLeases
  /** After this time the caller is told that the import is pending. */
  readonly pendingMs: number
}

/** What to import. */
export interface ImportWish {
  readonly reference: DataReference
  readonly target_format?: string
}

type ImportWork = (wish: ImportWish) => Promise<WireImport>

/** The stored record of an import. */
interface Operation {
  readonly result: WireImport
  /** While it runs: what it imports. */
  readonly wish?: ImportWish
  /** While it runs: the process that does it. */
  readonly runner?: string
}

const keepMs = 86_400_000

/** Background imports. */
export class BackgroundImports {
  readonly #parts: OperationsParts

  constructor(parts: OperationsParts) {
    this.#parts = parts
  }

  /** Runs an import: returns its result, or `pending` with an id. */
  async run(owner: string, wish: ImportWish, work: ImportWork): Promise<WireImport> {
    const ended = outcome(work, wish)
    const done = await this.#soon(ended)
    if (done !== undefined) return done
    const { runners } = this.#parts
    const id = crypto.randomUUID()
    const result: WireImport = { status: 'pending', operation_id: id }
    await runners.hold()
    const key = operationKey(owner, id)
    const version = await this.#write(key, { result, wish, runner: runners.id }).catch(error => {
      runners.release()
      throw error
    })
    this.#follow(key, id, version, ended)
    return result
  }

  /** Queries an import; `work` resumes one whose process has ended. */
  async status(owner: string, id: string, work: ImportWork): Promise<WireImport> {
    const { runners, store } = this.#parts
    const entry = await store.get(operationKey(owner, id))
    const found = entry === undefined ? undefined : readOperation(entry)
    if (entry === undefined || found === undefined)
      throw problem('RESOURCE_NOT_FOUND', 'You have no such import, or it has expired', {
        suggestion: 'Import the reference again',
      })
    const { result, wish, runner } = found
    if (wish === undefined || runner === undefined || (await runners.isAlive(runner))) return result
    await runners.hold()
    const version = await this.#write(entry.key, { result, wish, runner: runners.id }, entry.version).catch(() => undefined)
    if (version === undefined) runners.release()
    // Another process has resumed it.
    if (version === undefined) return result
    const ended = outcome(work, wish)
    this.#follow(entry.key, id, version, ended)
    const done = await this.#soon(ended)
    return done === undefined ? result : { ...done, operation_id: id }
  }

  /** The result, if it arrives before the caller must be answered. */
  async #soon(ended: Promise<WireImport>): Promise<WireImport | undefined> {
    const { clock, pendingMs } = this.#parts
    const { promise: late, resolve } = Promise.withResolvers<undefined>()
    const cancel = clock.setTimeout(() => resolve(undefined), pendingMs)
    const done = await Promise.race([ended, late])
    cancel()
    return done
  }

  /** Stores the result when it arrives. If that fails, the import stays pending, and is resumed by a later query. */
  #follow(key: string, id: string, version: number | undefined, ended: Promise<WireImport>): void {
    const { runners } = this.#parts
    const keep = async (result: WireImport): Promise<void> => {
      await this.#write(key, { result: { ...result, operation_id: id } }, version)
    }
    ended
      .then(keep)
      .catch(() => undefined)
      .finally(() => runners.release())
  }

  /** Undefined if another process has taken over. */
  async #write(key: string, operation: Operation, version?: number): Promise<number | undefined> {
    const condition = version === undefined ? { ifAbsent: true } : { ifVersion: version }
    const done = await this.#parts.store.commit([put(key, JSON.stringify(operation), { ...condition, ttl: keepMs })])
    return done.ok ? done.results[0]?.version : undefined
  }
}

function outcome(work: ImportWork, wish: ImportWish): Promise<WireImport> {
  return work(wish).catch((error: unknown): WireImport => ({ status: 'failed', error: toWire(problemOf(error)) }))
}

function readOperation({ value }: Entry): Operation | undefined {
  const found: unknown = JSON.parse(value)
  return isRecord(found) && isRecord(found['result']) ? (found as unknown as Operation) : undefined
}

/** Owner keys contain no slash; ids are encoded. */
function operationKey(owner: string, id: string): string {
  return `reference-import/${owner}/${encodeURIComponent(id.toWellFormed())}`
}
