/** What a message must be answered with, read off the message alone. */
import { McpError } from '../../src/jsonrpc/error.ts'
import { isId, isRecord } from '../../src/jsonrpc/message.ts'
import { demand } from './target.ts'

export type Expected = 'id' | 'bare' | 'none'

/** An answer under its id, one without, or none. */
export function expectedFor(sent: unknown): Expected {
  if (!isRecord(sent)) return 'bare'
  const { id, method, jsonrpc } = sent
  if (method === undefined && ('result' in sent || 'error' in sent)) return jsonrpc === '2.0' ? 'none' : 'bare'
  if (isId(id)) return 'id'
  return typeof method === 'string' && id === undefined ? 'none' : 'bare'
}

/** Answers that are due, by id; those without one under `bare`. */
export class Tally {
  readonly due = new Map<string, number>()
  readonly came = new Map<string, number>()
  /** Under these ids an answer may also be missing: cancelled, or lasting. */
  readonly free = new Set<string>()

  expect(sent: unknown): void {
    const expected = expectedFor(sent)
    if (expected === 'none') return
    const key = expected === 'bare' ? 'bare' : JSON.stringify((sent as { id: unknown }).id)
    this.due.set(key, (this.due.get(key) ?? 0) + 1)
  }

  take(frame: unknown): void {
    demand(isRecord(frame) && frame['jsonrpc'] === '2.0', () => `no message: ${JSON.stringify(frame)}`)
    if (frame['method'] !== undefined) return
    checkAnswer(frame)
    const key = frame['id'] === undefined || frame['id'] === null ? 'bare' : JSON.stringify(frame['id'])
    this.came.set(key, (this.came.get(key) ?? 0) + 1)
  }

  get complete(): boolean {
    for (const [key, count] of this.due) if (!this.free.has(key) && (this.came.get(key) ?? 0) < count) return false
    return true
  }

  /** `lost` may be missing, as when the connection ended before. */
  check(mayBeLost: boolean): void {
    demand(mayBeLost || this.complete, () => `unanswered: due ${list(this.due)}, came ${list(this.came)}`)
    for (const [key, count] of this.came)
      demand(count <= (this.due.get(key) ?? 0), () => `answered too often: due ${list(this.due)}, came ${list(this.came)}`)
  }
}

function list(counts: ReadonlyMap<string, number>): string {
  return JSON.stringify([...counts])
}

function checkAnswer(frame: Readonly<Record<string, unknown>>): void {
  demand('result' in frame !== 'error' in frame, () => `neither or both: ${JSON.stringify(frame)}`)
  if (!('error' in frame)) return
  const error = frame['error']
  const fine = isRecord(error) && Number.isInteger(error['code']) && typeof error['message'] === 'string'
  demand(fine, () => `no error object: ${JSON.stringify(frame)}`)
  demand(
    String(error['message']).length < 1_000 && !isOurs(error),
    () => `an error that is none of the caller's: ${JSON.stringify(frame)}`,
  )
}

/** The words for what nobody expected; whatever else is told as internal was meant to be. */
export function isOurs(error: Readonly<Record<string, unknown>>): boolean {
  return error['message'] === McpError.from(undefined).message
}
