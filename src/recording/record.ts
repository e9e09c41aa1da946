/** Recording the connections of a client of our own: for tests and hosts, where no process has to stand between. */
import type { Connection } from '../jsonrpc/connection.ts'
import type { HttpFacts } from './format.ts'
import { tapConnection } from './tap.ts'
import { RecordingWriter, type RecordOptions } from './writer.ts'

/** Connections that are being recorded into a file. */
export interface TapeRecording {
  /** For the option `wrap` of `connect`: each connection is a conversation of the tape. */
  readonly wrap: (connection: Connection) => Connection
  /** Nothing is kept from here on. Throws where something could not be written. */
  close(): void
}

/**
 * Writes down what passes over connections, into one file.
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
      const http: HttpFacts = {
        ...(status !== undefined && { status }),
        ...(outgoing?.headers !== undefined && { headers: outgoing.headers }),
      }
      lines.frame(way === 'out' ? 'client' : 'server', text, Object.keys(http).length > 0 ? { http } : {})
    },
    reason => lines.closed(reason?.message),
  )
}
