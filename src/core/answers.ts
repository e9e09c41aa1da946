/**
 * Who answered a question, kept in the store for a while after the question itself is gone: whoever answers second learns that, and
 * from whom, on any process.
 */
import { isRecord } from '../jsonrpc/message.ts'
import { type Op, put, type Store } from '../stores/store.ts'

/** An answer that counts. */
export interface AnswerRecord {
  /** Whether it was approved. */
  readonly yes: boolean
  /** Who answered, where that is known. */
  readonly by?: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

const keepMs = 3_600_000

/** The step that keeps an answer, for the commit that carries it out. */
export function keepAnswerOp(id: string, { yes, by, at }: AnswerRecord): Op {
  return put(`answered/${id}`, JSON.stringify({ yes, by, at }), { ttl: keepMs })
}

/** The answer to a question; undefined where there was none, or it is too long ago. */
export async function findAnswer(store: Store, id: string): Promise<AnswerRecord | undefined> {
  const entry = await store.get(`answered/${id}`)
  const said: unknown = entry === undefined ? undefined : JSON.parse(entry.value)
  if (!isRecord(said) || typeof said['yes'] !== 'boolean' || typeof said['at'] !== 'number') return undefined
  const { yes, at, by } = said
  return { yes, at, ...(typeof by === 'string' && { by }) }
}
