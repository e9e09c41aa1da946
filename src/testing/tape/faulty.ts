/** A connection on which things go wrong by rule: what is sent over it is held back, lost, doubled, overtaken or spoilt. */
import { type Clock, realClock } from '../../core/clock.ts'
import type { Connection } from '../../jsonrpc/connection.ts'
import { failureFrame, type Id, isId, isRecord } from '../../jsonrpc/message.ts'
import type { Fate } from './faults.ts'

/** Begins as a message does, and is none. */
const garbage = '{"jsonrpc":"2.0",\u0000]]\u0007 not a message'

interface Frame {
  readonly text: string
  /** Whose answer it is. */
  readonly id: Id | undefined
}

/** `methodOf` names the method that an answer answers. */
export function faulty(
  connection: Connection,
  fate: Fate,
  methodOf: (id: Id) => string | undefined,
  clock: Clock = realClock,
): Connection {
  let overtaken: Frame | undefined
  let ended = false
  const pass = (frame: Frame): void => {
    if (ended) return
    void Promise.resolve(connection.send(frame.text, frame.id === undefined ? {} : { id: frame.id })).catch(() => {})
    flush()
  }
  const flush = (): void => {
    const late = overtaken
    overtaken = undefined
    if (late !== undefined) pass(late)
  }
  const send = (text: string): void => {
    const { method, id } = aboutIn(text, methodOf)
    const faults = fate(method)
    const has = (kind: string) => faults.find(fault => fault.kind === kind)
    if (has('cut') !== undefined) {
      ended = true
      return void connection.close()
    }
    if (has('drop') !== undefined) return
    const error = has('error')
    const put =
      has('garbage') !== undefined ? garbage : error !== undefined && id !== undefined ? errorText(id, error.code) : text
    const frame: Frame = { text: put, id }
    const deliver = (): void => {
      if (has('reorder') !== undefined && overtaken === undefined) {
        overtaken = frame
        // What nothing overtakes comes all the same.
        clock.setTimeout(() => overtaken === frame && flush(), 100, true)
        return
      }
      pass(frame)
      if (has('duplicate') !== undefined) pass(frame)
    }
    const delay = has('delay')
    if (delay === undefined) deliver()
    else clock.setTimeout(deliver, delay.ms ?? 1_000, true)
  }
  return { carrier: connection.carrier, start: sink => connection.start(sink), send, close: () => connection.close() }
}

function errorText(id: Id, code = -32603): string {
  return failureFrame(id, { code, message: 'An error was asked for by a fault' })
}

function aboutIn(text: string, methodOf: (id: Id) => string | undefined): { method: string; id: Id | undefined } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { method: '', id: undefined }
  }
  if (!isRecord(value)) return { method: '', id: undefined }
  if (typeof value['method'] === 'string') return { method: value['method'], id: undefined }
  const id = isId(value['id']) ? value['id'] : undefined
  return { method: (id === undefined ? undefined : methodOf(id)) ?? '', id }
}
