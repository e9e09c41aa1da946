/** A recording that plays: as a server in memory, or on standard input and output or a port. */
import type { Connection } from '../jsonrpc/connection.ts'
import { memoryPair } from '../transports/memory.ts'
import type { RecordingHeader } from './format.ts'
import { type ClientListener, type ClientListenerOptions, listenForClients } from './listener.ts'
import { mockServer, type PlayingOptions } from './mock-server.ts'
import { connectionsOf, openRecording, type RecordedConnection, type RecordingText, readRecording } from './read.ts'

/** A recording that was read, and can be played. */
export interface Tape {
  readonly header: RecordingHeader
  readonly conversations: readonly RecordedConnection[]
  /** Whether its writer was killed amid a line, or the file was full: something is missing at its end. */
  readonly cut: boolean
  /** A connection to a server that says what it said on the tape: for `connect`. Each call begins the next conversation. */
  target(options?: PlayingOptions): Connection
}

/**
 * Reads a tape.
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

/** How a tape is served. */
export interface ServeTapeOptions extends PlayingOptions {
  /** Where clients come in. Default: any free port. */
  readonly client?: ClientListenerOptions
}

/**
 * Serves a tape as a mock server.
 * @example const mock = await serveTape('session.tape', { client: { port: 7000 }, faults: ['drop:0.1'] })
 */
export async function serveTape(
  tape: string | Tape,
  { client = {}, ...playing }: ServeTapeOptions = {},
): Promise<ClientListener> {
  const { conversations } = typeof tape === 'string' ? await openTape(tape) : tape
  return listenForClients(client, mockServer(conversations, playing))
}
