/**
 * A server out of a recording: what it was asked then it answers as it did then, under the id of now. What was never asked is refused, so
 * that it shows.
 */
import type { Clock } from '../core/clock.ts'
import type { Connection, Sink } from '../jsonrpc/connection.ts'
import { type Id, isId, isRecord } from '../jsonrpc/message.ts'
import { failureFrame, successFrame } from '../jsonrpc/serialize.ts'
import { type FaultPicker, type FaultsOption, faultPicker, faultyConnection } from './faults.ts'
import { jsonValue, type RecordedMessage } from './format.ts'
import type { RecordedConnection } from './read.ts'
import { type ClientMessage, Script } from './script.ts'
import { UnansweredRequests } from './unanswered.ts'

/** How a recording is played. */
export interface PlayingOptions {
  /** How fast: 1 is the pace of the tape, 2 twice that. Default: without any waiting. */
  readonly speed?: number
  /** What goes wrong: `delay=200ms@tools/call:0.5`, `drop`, `cut:0.01`, … Default: nothing. */
  readonly faults?: FaultsOption
  /** The same seed brings the same faults. Default 1. */
  readonly seed?: number
  readonly clock?: Clock
}

/** Asked by clients when they like, and always answered alike. */
const emptyAnswers = new Set(['ping', 'logging/setLevel'])

/** Serves connections, each with the next one of the recording; those beyond the last begin with the last again. */
export function mockServer(
  recorded: readonly RecordedConnection[],
  options: PlayingOptions = {},
): (connection: Connection) => void {
  const picker = faultPicker(options.faults, options.seed)
  let opened = 0
  return connection => {
    const at = Math.min(opened++, recorded.length - 1)
    serve(connection, recorded, at, options, picker)
  }
}

function serve(
  connection: Connection,
  recorded: readonly RecordedConnection[],
  at: number,
  options: PlayingOptions,
  picker: FaultPicker,
): void {
  const methods = new Map<Id, string>()
  const far = faultyConnection(connection, picker, id => methods.get(id), options.clock)
  const unanswered = new UnansweredRequests()
  const send = (text: string): void => {
    unanswered.answered(text)
    void far.send(text)
  }
  const script = new Script(recorded[at]?.frames ?? [], send, options)
  // A question of another connection is better answered than refused: a mock is asked by others than its recording was.
  const others = recorded.filter((_, other) => other !== at).map(({ frames }) => new Script(frames, send, options))
  const take = (value: unknown): void => {
    if (!isRecord(value)) return
    const message = clientMessage(value)
    if (message === undefined) return script.answered(value)
    const { id, method } = message
    if (id !== undefined) methods.set(id, method)
    if (script.play(message) || others.some(other => other.play(message, true)) || id === undefined) return
    send(emptyAnswers.has(method) ? successFrame(id, '{}') : unknownFrame(id, method))
  }
  void far.start({
    frame: text => {
      unanswered.asked(text)
      const value = jsonValue(text)
      if (value === undefined) return send(failureFrame(undefined, { code: -32700, message: 'Not JSON' }))
      for (const part of Array.isArray(value) ? value : [value]) take(part)
    },
    fault: ({ message }) => send(failureFrame(undefined, { code: -32700, message })),
    closed: () => {
      unanswered.end()
      for (const each of [script, ...others]) each.stop()
    },
    quiet: () => unanswered.quiet(),
  })
}

/** A server out of a recording that holds its client to what was asked then: each answer is given once. */
export interface RecordedServer {
  open(): Connection
  /** What was asked that the recording does not know, and what it knows that was not asked. */
  differences(): { readonly added: readonly string[]; readonly missing: readonly string[] }
}

/** `recorded`: the connections of one server, in order; one that is opened beyond them begins with the last again. */
export function recordedServer(recorded: readonly RecordedConnection[]): RecordedServer {
  const added: string[] = []
  const scripts: Script[] = []
  return {
    open: () => {
      const { carrier = 'memory', frames = [] } = recorded[Math.min(scripts.length, recorded.length - 1)] ?? {}
      let sink: Sink | undefined
      const deliver = (text: string): void => queueMicrotask(() => sink?.frame(text))
      const script = new Script(frames, deliver, { once: true })
      scripts.push(script)
      return {
        carrier,
        start: given => {
          sink = given
          script.begin()
        },
        send: text => {
          const value = jsonValue(text)
          if (!isRecord(value)) return
          const message = clientMessage(value)
          if (message === undefined) return script.answered(value)
          if (script.play(message) || message.id === undefined) return
          added.push(message.method)
          deliver(unknownFrame(message.id, message.method))
        },
        close: async () => {
          script.stop()
          sink?.closed()
        },
      }
    },
    differences: () => ({ added, missing: scripts.flatMap(script => script.unasked()) }),
  }
}

/** Undefined for an answer. */
function clientMessage({ method, params, id }: RecordedMessage): ClientMessage | undefined {
  return typeof method === 'string' ? { method, params, ...(isId(id) && { id }) } : undefined
}

function unknownFrame(id: Id, method: string): string {
  return failureFrame(id, { code: -32601, message: `The tape does not know this ${method}: it was not asked with these params` })
}
