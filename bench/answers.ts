/**
 * Checks every answer, so that nobody wins by answering rubbish, without the load generator parsing 100 KB each time:
 * ids and stamps have a fixed width, so once one answer has been read whole, the others of the same length hold theirs at
 * the same places. One in 64 is read whole anyway.
 */
import { ID_DIGITS, type Revision, STAMP_MARK, type Work } from './work.ts'

export class AnswerCheck {
  readonly #work: Work
  readonly #revision: Revision
  #length = -1
  #idAt = -1
  #stampAt = -1
  #seen = 0

  constructor(work: Work, revision: Revision) {
    this.#work = work
    this.#revision = revision
  }

  /** Size of the answers read so far, in bytes. */
  get bytes(): number {
    return this.#length
  }

  /** Returns the id this answer belongs to; throws if it is not a right answer. */
  read(body: Buffer): number {
    if (body.length === this.#length && (++this.#seen & 63) !== 0) {
      const id = digits(body, this.#idAt)
      if (this.#stampAt < 0 || digits(body, this.#stampAt) === id) return id
    }
    return this.#readWhole(body)
  }

  #readWhole(body: Buffer): number {
    const message = JSON.parse(body.toString()) as { id?: unknown; result?: Record<string, unknown> }
    const { id, result } = message
    const fault = typeof id !== 'number' || result === undefined ? 'not a result' : this.#fault(result, id)
    if (fault !== undefined) throw new Error(`${this.#work.name}: ${fault}: ${body.toString('utf8', 0, 200)}`)
    this.#length = body.length
    this.#idAt = body.indexOf(`"id":${id}`) + '"id":'.length
    const stampAt = body.indexOf(STAMP_MARK + id)
    this.#stampAt = stampAt < 0 ? -1 : stampAt + STAMP_MARK.length
    return id as number
  }

  #fault(result: Record<string, unknown>, id: number): string | undefined {
    const modern = this.#revision === '2026-07-28'
    if (modern !== (result.resultType === 'complete')) return 'a resultType that is not of this revision'
    if (modern && this.#work.method === 'tools/list') {
      if (!Number.isInteger(result.ttlMs) || typeof result.cacheScope !== 'string') return 'a list without cache fields'
    }
    return this.#work.fault(result, STAMP_MARK + id)
  }
}

function digits(body: Buffer, at: number): number {
  let value = 0
  for (let index = at; index < at + ID_DIGITS; index++) value = value * 10 + (body[index] ?? 0) - 48
  return value
}
