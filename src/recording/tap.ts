/** Listens in on a connection: what passes in either direction, without changing anything about it. */
import type { Connection, Outgoing } from '../jsonrpc/connection.ts'
import { picked } from '../jsonrpc/message.ts'
import { RecordingWriter, type RecordOptions } from './writer.ts'

/** A frame, seen from the end that was tapped. */
export interface PassedFrame {
  /** Whether this end sent it (`out`) or received it (`in`). */
  readonly way: 'out' | 'in'
  /** The frame as text. */
  readonly text: string
  /** The HTTP status that carried it, if there was one. */
  readonly status?: number | undefined
  /** What accompanied a frame that was sent. */
  readonly outgoing?: Outgoing | undefined
}

/** Called with every frame. */
export type OnFrame = (frame: PassedFrame) => void

/** Returns the same connection, with `onFrame` called before each frame is passed on, and `onClosed` at its end. */
export function tapConnection(connection: Connection, onFrame: OnFrame, onClosed?: (reason?: Error) => void): Connection {
  const { listen, drop, rest, expire } = connection
  return {
    carrier: connection.carrier,
    ...(connection.caller === undefined ? {} : { caller: connection.caller }),
    start: sink =>
      connection.start({
        frame: (text, status, within) => {
          onFrame({ way: 'in', text, status })
          sink.frame(text, status, within)
        },
        fault: fault => sink.fault(fault),
        closed: reason => {
          onClosed?.(reason)
          sink.closed(reason)
        },
        hold: (id, held) => sink.hold?.(id, held),
        released: (id, retryMs) => sink.released?.(id, retryMs),
        quiet: () => sink.quiet?.() ?? Promise.resolve(),
      }),
    send: (text, outgoing) => {
      onFrame({ way: 'out', text, outgoing })
      return connection.send(text, outgoing)
    },
    ...(listen === undefined ? {} : { listen: (outgoing, user) => listen.call(connection, outgoing, user) }),
    ...(drop === undefined ? {} : { drop: (id, reason) => drop.call(connection, id, reason) }),
    ...(rest === undefined ? {} : { rest: ms => rest.call(connection, ms) }),
    ...(expire === undefined ? {} : { expire: () => expire.call(connection) }),
    close: () => connection.close(),
  }
}

// Recording the connections of a client of our own: for tests and hosts, where no process has to stand between.

/** A recording in progress. */
export interface TapeRecording {
  /** For the option `wrap` of `connect`: each connection becomes a conversation of the tape. */
  readonly wrap: (connection: Connection) => Connection
  /** Ends the recording. Throws if something could not be written. */
  close(): void
}

/**
 * Records the traffic of connections in a file.
 * @example
 * const tape = recordTape('session.tape')
 * await using mcp = await connect(url, { wrap: tape.wrap })
 */
export function recordTape(file: string, options: RecordOptions = {}): TapeRecording {
  const writer = new RecordingWriter(file, options)
  writer.begin()
  return { wrap: connection => recordConnection(connection, writer), close: () => writer.close() }
}

/** The same connection, with all that passes and its end written down. `server`: its name, where a host has several. */
export function recordConnection(connection: Connection, writer: RecordingWriter, server?: string): Connection {
  const lines = writer.connection(connection.carrier, server)
  return tapConnection(
    connection,
    ({ way, text, status, outgoing }) => {
      const http = picked({ status, headers: outgoing?.headers }, 'status', 'headers')
      lines.frame(way === 'out' ? 'client' : 'server', text, Object.keys(http).length > 0 ? { http } : {})
    },
    reason => lines.closed(reason?.message),
  )
}
