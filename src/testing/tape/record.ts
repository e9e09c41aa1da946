/** Recording the connections of a client of our own: for tests, where no process has to stand between. */
import type { Connection } from '../../jsonrpc/connection.ts'
import { tapConnection } from '../tap.ts'
import type { HttpFacts } from './line.ts'
import { type RecordOptions, TapeWriter } from './writer.ts'

export interface TapeRecording {
  /** For the option `wrap` of `connect`: each connection is a conversation of the tape. */
  readonly wrap: (connection: Connection) => Connection
  /** Nothing is kept from here on. */
  close(): void
}

/**
 * Writes down what passes over connections, into one file.
 * @example
 * const tape = recordTape('session.tape')
 * await using mcp = await connect(url, { wrap: tape.wrap })
 */
export function recordTape(file: string, options: RecordOptions = {}): TapeRecording {
  const writer = new TapeWriter(file, options)
  writer.begin()
  return { wrap: connection => taped(connection, writer), close: () => writer.close() }
}

/** The same connection, the tape hearing all of it and its end. */
export function taped(connection: Connection, writer: TapeWriter): Connection {
  const tape = writer.conversation(connection.carrier)
  const tapped = tapConnection(connection, ({ way, text, status, outgoing }) => {
    const http: HttpFacts = {
      ...(status !== undefined && { status }),
      ...(outgoing?.headers !== undefined && { headers: outgoing.headers }),
    }
    tape.frame(way === 'out' ? 'client' : 'server', text, Object.keys(http).length > 0 ? { http } : {})
  })
  const { start } = tapped
  return {
    ...tapped,
    start: sink =>
      start({
        ...bound(sink),
        closed: reason => {
          tape.closed(reason?.message)
          sink.closed(reason)
        },
      }),
  }
}

function bound(sink: Parameters<Connection['start']>[0]): Parameters<Connection['start']>[0] {
  const { hold, quiet } = sink
  return {
    frame: (text, status) => sink.frame(text, status),
    fault: fault => sink.fault(fault),
    closed: reason => sink.closed(reason),
    ...(hold !== undefined && { hold: (id, held) => hold.call(sink, id, held) }),
    ...(quiet !== undefined && { quiet: () => quiet.call(sink) }),
  }
}
