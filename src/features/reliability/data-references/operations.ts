/** Imports that take longer than an answer may: they go on, and are asked about by their id. Loaded with the first import by a tool. */
import type { Clock } from '../../../core/clock.ts'
import { problem } from '../../../core/problem.ts'
import { problemOf } from '../../../core/problem-facts.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { put } from '../../../stores/ops.ts'
import type { Store } from '../../../stores/store.ts'
import { toWire } from '../problem/messages.ts'
import type { WireImport } from './messages.ts'

export interface OperationsParts {
  readonly store: Store
  readonly clock: Clock
  /** After so long the caller is told that it is pending. */
  readonly pendingMs: number
}

/** An operation whose process says nothing for so long has gone with it. */
const aliveMs = 60_000
const keepMs = 86_400_000

export class Operations {
  readonly #parts: OperationsParts

  constructor(parts: OperationsParts) {
    this.#parts = parts
  }

  /** How it ended; or that it goes on, and under which id. */
  async run(owner: string, work: () => Promise<WireImport>): Promise<WireImport> {
    const { clock, pendingMs } = this.#parts
    const ended = work().catch((error: unknown): WireImport => ({ status: 'failed', error: toWire(problemOf(error)) }))
    const { promise: late, resolve } = Promise.withResolvers<undefined>()
    const cancel = clock.setTimeout(() => resolve(undefined), pendingMs)
    const done = await Promise.race([ended, late])
    cancel()
    return done ?? this.#goOn(owner, ended)
  }

  async status(owner: string, id: string): Promise<WireImport> {
    const entry = await this.#parts.store.get(operationKey(owner, id))
    const found: unknown = entry === undefined ? undefined : JSON.parse(entry.value)
    if (isRecord(found)) return found as unknown as WireImport
    throw problem('RESOURCE_NOT_FOUND', 'There is no such import of yours, or the process that ran it has gone', {
      suggestion: 'Import the reference again',
    })
  }

  async #goOn(owner: string, ended: Promise<WireImport>): Promise<WireImport> {
    const { clock } = this.#parts
    const id = crypto.randomUUID()
    const pending: WireImport = { status: 'pending', operation_id: id }
    await this.#write(owner, id, pending, aliveMs)
    let stop = (): void => {}
    const renew = (): void => {
      stop = clock.setTimeout(() => void this.#write(owner, id, pending, aliveMs).then(renew, renew), aliveMs / 3, true)
    }
    renew()
    const keep = async (result: WireImport): Promise<void> => {
      stop()
      await this.#write(owner, id, { ...result, operation_id: id }, keepMs)
    }
    // Where it cannot be written, it is soon unknown, which is what is then known of it.
    void ended.then(keep).catch(() => undefined)
    return pending
  }

  async #write(owner: string, id: string, result: WireImport, ttl: number): Promise<void> {
    await this.#parts.store.commit([put(operationKey(owner, id), JSON.stringify(result), { ttl })])
  }
}

/** Owners contain no slash, and ids that do are nobody's. */
function operationKey(owner: string, id: string): string {
  return `reference-import/${owner}/${encodeURIComponent(id.toWellFormed())}`
}
