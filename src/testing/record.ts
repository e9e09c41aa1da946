/** Writing a transcript down while it happens. */
import type { Connection } from '../jsonrpc/connection.ts'
import { tapConnection } from './tap.ts'
import { formatFrame } from './transcript.ts'

export interface Recording {
  /** Use this one instead of the connection that was given. */
  readonly connection: Connection
  /** The transcript so far, seen from the client. */
  text(): string
}

/**
 * Keeps what passes over a client's connection.
 * @example
 * const recording = recordTranscript(connection)
 * await using mcp = await connect(recording.connection)
 */
export function recordTranscript(connection: Connection): Recording {
  const lines: string[] = []
  const recorded = tapConnection(connection, ({ way, text, status }) => {
    const mark = way === 'out' ? '->' : status === undefined || status === 200 ? '<-' : `<- ${status}`
    lines.push(`${mark} ${formatFrame(JSON.parse(text))}`)
  })
  return { connection: recorded, text: () => lines.map(line => `${line}\n`).join('') }
}
