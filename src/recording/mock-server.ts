/**
 * A server out of a recording: what it was asked then it answers as it did then, under the id of now. What was never asked is refused, so
 * that it shows.
 */
import { type Clock, type Duration, realClock, seeded, toMilliseconds } from '../core/clock.ts'
import type { Connection, Sink } from '../jsonrpc/connection.ts'
import { clip } from '../jsonrpc/limits.ts'
import { failureFrame, type Id, isId, isRecord, successFrame } from '../jsonrpc/message.ts'
import { memoryPair } from '../transports/memory.ts'
import { jsonValue, type RecordedMessage, type RecordingHeader } from './format.ts'
import { UnansweredRequests } from './frame-sender.ts'
import { type ClientListener, type ClientListenerOptions, listenForClients } from './listener.ts'
import { connectionsOf, openRecording, type RecordedConnection, type RecordingText, readRecording } from './read.ts'
import { ConnectionPlayback } from './script.ts'

/** Options of playing a tape. */
export interface PlayingOptions {
  /** The speed: 1 is the pace of the recording, 2 is twice as fast. Default: without delays. */
  readonly speed?: number
  /** Faults to inject: `delay=200ms@tools/call:0.5`, `drop`, `cut:0.01`, … Default: none. */
  readonly faults?: FaultsOption
  /** The seed of random faults; the same seed gives the same faults. Default 1. */
  readonly seed?: number
  /** For tests: time and timers. Default: the real clock. */
  readonly clock?: Clock
}

/** Asked by clients when they like, and always answered alike. */
const emptyAnswers = new Set(['ping', 'logging/setLevel'])

/** Serves connections, each with the next one of the recording; those beyond the last begin with the last again. */
function mockServer(recorded: readonly RecordedConnection[], options: PlayingOptions = {}): (connection: Connection) => void {
  const picker = faultPicker(options.faults, options.seed)
  let opened = 0
  return connection => serve(connection, recorded, Math.min(opened++, recorded.length - 1), options, picker)
}

/** Plays one recorded connection to a client. */
function serve(
  connection: Connection,
  recorded: readonly RecordedConnection[],
  at: number,
  options: PlayingOptions,
  picker: ReturnType<typeof faultPicker>,
): void {
  const methods = new Map<Id, string>()
  const far = faultyConnection(connection, picker, id => methods.get(id), options.clock)
  const unanswered = new UnansweredRequests()
  const send = (text: string): void => {
    unanswered.answered(text)
    void far.send(text)
  }
  const script = new ConnectionPlayback(recorded[at]?.frames ?? [], send, options)
  // A question of another connection is better answered than refused: a mock is asked by others than its recording was.
  const others = recorded.filter((_, other) => other !== at).map(({ frames }) => new ConnectionPlayback(frames, send, options))
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
      if (value === undefined) return send(failureFrame(undefined, { code: -32700, message: 'The message is not valid JSON' }))
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

/**
 * A server out of a recording that holds its client to what was asked then: each answer is given once. `recorded`: the connections of one
 * server, in order; one that is opened beyond them begins with the last again.
 */
export function recordedServer(recorded: readonly RecordedConnection[]) {
  const added: string[] = []
  const scripts: ConnectionPlayback[] = []
  return {
    open: (): Connection => {
      const { carrier = 'memory', frames = [] } = recorded[Math.min(scripts.length, recorded.length - 1)] ?? {}
      let sink: Sink | undefined
      const deliver = (text: string): void => queueMicrotask(() => sink?.frame(text))
      const script = new ConnectionPlayback(frames, deliver, { once: true })
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
    /** What was asked that the recording does not know, and what it knows that was not asked. */
    differences: () => ({ added, missing: scripts.flatMap(script => script.unasked()) }),
  }
}

/** Undefined for an answer. */
function clientMessage({ method, params, id }: RecordedMessage) {
  return typeof method === 'string' ? { method, params, ...(isId(id) && { id }) } : undefined
}

function unknownFrame(id: Id, method: string): string {
  return failureFrame(id, { code: -32601, message: `The tape has no answer to ${method} with these params` })
}

// What goes wrong on a line, on purpose: each rule names a fault, the methods that it strikes and how often. Chance comes from a seed, so
// that what a test has seen it sees again.

const faultKinds = ['delay', 'drop', 'duplicate', 'reorder', 'cut', 'error', 'garbage'] as const
/** The kinds of faults. */
export type FaultKind = (typeof faultKinds)[number]

/** A fault to inject. */
export interface InjectedFault {
  /** What goes wrong. */
  readonly kind: FaultKind
  /** The method whose messages or answers it affects; a `*` at the end stands for any characters. Default: all. */
  readonly method?: string
  /** The probability, from 0 to 1. Default 1. */
  readonly probability?: number
  /** With `delay`: the delay in milliseconds. Default 1,000. */
  readonly ms?: number
  /** With `error`: the JSON-RPC error code. Default −32603. */
  readonly code?: number
}

/** Faults, as objects or in the form of the command line. */
type FaultsOption = readonly (InjectedFault | string)[]

const written = /^([a-z]+)(?:=([^@:]+))?(?:@([^:]+))?(?::([\d.]+))?$/

/** @example parseFault('delay=200ms@tools/call:0.5') */
function parseFault(text: string): InjectedFault {
  const [, kind, value, method, chance] = written.exec(text) ?? []
  const known = faultKinds.find(each => each === kind)
  const probability = chance === undefined ? 1 : Number(chance)
  if (known === undefined || !(probability >= 0 && probability <= 1))
    throw new TypeError(
      `"${clip(text)}" is not a valid fault. Write KIND[=VALUE][@METHOD][:PROBABILITY], where KIND is one of ${faultKinds.join(', ')}, as in delay=200ms@tools/call:0.5`,
    )
  return {
    kind: known,
    probability,
    ...(method !== undefined && { method }),
    ...(known === 'delay' && { ms: toMilliseconds((value ?? '1s') as Duration, 'delay') }),
    ...(known === 'error' && { code: codeOf(value) }),
  }
}

function codeOf(value = '-32603'): number {
  const code = Number(value)
  if (Number.isSafeInteger(code)) return code
  throw new TypeError(`"${clip(value)}" is not an integer. Write the error code as a number, as in error=-32603`)
}

/** Says by rules and a seed which faults strike what is about to be sent. */
function faultPicker(faults: FaultsOption = [], seed = 1): (method: string) => readonly InjectedFault[] {
  const rules = faults.map(fault => (typeof fault === 'string' ? parseFault(fault) : fault))
  const random = seeded(seed)
  // Each rule draws each time, so that one rule more changes nothing about the others' luck.
  return method => rules.filter(({ method: wanted, probability = 1 }) => strikes(wanted, method) && random() < probability)
}

/** Whether a rule applies to a method. */
function strikes(wanted: string | undefined, method: string): boolean {
  if (wanted === undefined || wanted === method) return true
  return wanted.endsWith('*') && method.startsWith(wanted.slice(0, -1))
}

/** Begins as a message does, and is none. */
const garbage = '{"jsonrpc":"2.0",\u0000]]\u0007 not a message'

interface Frame {
  readonly text: string
  /** Whose answer it is. */
  readonly id: Id | undefined
}

/**
 * The same connection, on which things go wrong by rule: what is sent over it is held back, lost, doubled, overtaken or spoilt.
 * `methodOf` names the method that an answer answers.
 */
function faultyConnection(
  connection: Connection,
  picker: ReturnType<typeof faultPicker>,
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
    const faults = picker(method)
    const has = (kind: string) => faults.find(fault => fault.kind === kind)
    if (has('cut') !== undefined) {
      ended = true
      return void connection.close()
    }
    if (has('drop') !== undefined) return
    const error = has('error')
    const answer = error === undefined || id === undefined ? text : errorText(id, error.code)
    const frame: Frame = { text: has('garbage') === undefined ? answer : garbage, id }
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
  return failureFrame(id, { code, message: 'This error was injected by a fault of the mock server' })
}

/** The method and id that a frame is about. */
function aboutIn(text: string, methodOf: (id: Id) => string | undefined): { method: string; id: Id | undefined } {
  const value = jsonValue(text)
  if (!isRecord(value)) return { method: '', id: undefined }
  if (typeof value['method'] === 'string') return { method: value['method'], id: undefined }
  const id = isId(value['id']) ? value['id'] : undefined
  return { method: (id === undefined ? undefined : methodOf(id)) ?? '', id }
}

// A recording that plays: as a server in memory, or on standard input and output or a port.

/** A recording of MCP traffic, made by `openTape`. */
export interface Tape {
  /** The first line of the recording. */
  readonly header: RecordingHeader
  /** The recorded connections, in the order in which they were opened. */
  readonly conversations: readonly RecordedConnection[]
  /** Whether the end of the recording is missing, because its writer was killed or the file was full. */
  readonly cut: boolean
  /** Returns a connection to a server that answers as on the tape, for `connect`. Each call starts the next recorded conversation. */
  target(options?: PlayingOptions): Connection
}

/**
 * Reads a recording of MCP traffic.
 * @example
 * const tape = await openTape('session.tape')
 * await using mcp = await connect(tape.target())
 */
export async function openTape(file: string): Promise<Tape> {
  return tapeOf(await openRecording(file, 'tape'))
}

/** The same of a recording, or of its text. */
export function tapeOf(given: string | RecordingText): Tape {
  const recording = typeof given === 'string' ? readRecording(given, 'tape') : given
  const { header, cut } = recording
  const conversations = connectionsOf(recording).filter(({ frames }) => frames.length > 0)
  const opened = new Map<PlayingOptions | undefined, ReturnType<typeof mockServer>>()
  return {
    header,
    conversations,
    cut,
    target: options => {
      const serve = opened.get(options) ?? mockServer(conversations, options)
      opened.set(options, serve)
      const [near, far] = memoryPair()
      serve(far)
      return near
    },
  }
}

/** Options of `serveTape`. */
export interface ServeTapeOptions extends PlayingOptions {
  /** Where clients connect. Default: any free port. */
  readonly client?: ClientListenerOptions
}

/**
 * Serves a recording as a mock server.
 * @example const mock = await serveTape('session.tape', { client: { port: 7000 }, faults: ['drop:0.1'] })
 */
export async function serveTape(
  tape: string | Tape,
  { client = {}, ...playing }: ServeTapeOptions = {},
): Promise<ClientListener> {
  const { conversations } = typeof tape === 'string' ? await openTape(tape) : tape
  return listenForClients(client, mockServer(conversations, playing))
}
