/** `vivarium record`: stands between a client and a server and writes one file of all that passes. */

import { lstatSync } from 'node:fs'
import { clip } from '../../jsonrpc/limits.ts'
import { given } from '../../jsonrpc/message.ts'
import { startRecording } from '../../testing/index.ts'
import { portOf } from '../arguments.ts'
import { type AccessOptions, accessOptions, headersOf, targetAbout } from '../connecting.ts'
import { CliError, cliFailureOf, type Io, untilInterrupted } from '../io.ts'
import { printerOf } from '../print.ts'
import type { Verb, VerbCall } from '../program.ts'
import { resolveTarget, splitTarget } from '../target.ts'
import { say } from '../terminal/text.ts'

/** The options of `vivarium record`. */
interface RecordOptions extends AccessOptions {
  /** The tape to write. */
  readonly out: string
  /** Overwrite a tape that is there. */
  readonly force?: boolean
  /** The client speaks on standard input and output; otherwise it comes over HTTP. */
  readonly stdio?: boolean
  /** Where the client connects; undefined takes any that is free. */
  readonly port?: number
  /** Members whose values are left out of the tape. */
  readonly redact?: readonly string[]
  /** The most megabytes of the tape. */
  readonly maxMb?: number
  /** The server speaks by the old pair of HTTP endpoints. */
  readonly sse?: boolean
  readonly format: 'text' | 'json'
}

/** `vivarium record`. */
export const record: Verb = (command, io) => {
  accessOptions(
    command
      .argument('[target]', targetAbout)
      .option('--out <file>', 'Write the recording (the tape) to this file', { fallback: 'session.tape' })
      .option('--force', 'Overwrite an existing tape')
      .option('--stdio', 'Serve the client over stdio: put this command in its config in place of the server')
      .option('--port <number>', 'Serve the client over HTTP at this port (default: any free port)', { parse: portOf })
      .option('--redact <path>', 'Leave out the values of this member: params.arguments.password, **.apiKey', { repeated: true })
      .option('--sse', 'With --stdio: reach the server over the HTTP+SSE pair of 2024-11-05')
      .option('--max-mb <number>', 'Limit the size of the tape, in megabytes (default: 256)', { parse: sizeOf }),
  )
    .note(
      'Headers that hold secrets are never recorded. Name other secrets with --redact: everything else is written as it passes.',
    )
    .examples([
      [
        'vivarium record https://host/mcp --port 7000',
        'Record a server over HTTP; point the client at http://127.0.0.1:7000/mcp',
      ],
      [
        'vivarium record --stdio --force --out notes.tape -- node notes.js',
        'Record a program: put this into the config of a client',
      ],
    ])
    .action<RecordOptions>(call => run(call, io))
}

/** A number of megabytes, as it is typed. */
function sizeOf(text: string): number {
  const size = Number(text)
  if (size > 0 && Number.isFinite(size)) return size
  throw new TypeError(`"${clip(text)}" is not a number of megabytes`)
}

/** Stands between client and server until one of them ends or it is interrupted. */
async function run(call: VerbCall<RecordOptions>, io: Io): Promise<number> {
  const { out, stdio = false, port, redact, maxMb, sse, env, format } = call.options
  if (stdio && port !== undefined) throw new CliError('--stdio and --port cannot be used together', 'Remove one of them')
  // A link is no file of ours, wherever it leads.
  const there = lstatSync(out, { throwIfNoEntry: false })
  if (there !== undefined && (call.options.force !== true || there.isSymbolicLink()))
    throw new CliError(`The file ${clip(out)} already exists`, 'Choose another file with --out, or overwrite it with --force')
  const resolved = await resolveTarget(splitTarget(call).target, io, { env, trust: call.options.trust })
  const headers = headersOf(resolved, call.options, io)
  // On stdio standard output belongs to the protocol.
  const { aside, json, line, paint } = printerOf(io)
  let troubled = false
  const proxy = await startRecording(resolved.target, {
    file: out,
    headers,
    onTrouble: error => {
      troubled = true
      aside.warn(`vivarium: ${cliFailureOf(error).message}`)
    },
    client: stdio ? { stdio: true } : given({ port }),
    ...given({ redact, maxBytes: maxMb && Math.floor(maxMb * 1024 * 1024), pair: sse }),
  })
  if (proxy.url !== undefined && format === 'json') json({ url: proxy.url, file: out }, true)
  else if (proxy.url !== undefined) {
    line(say`Recording ${resolved.label} to ${clip(out)}. Point the client at ${paint.name(proxy.url)}`)
    aside.note('  Press Ctrl-C to end')
  }
  await Promise.race([untilInterrupted(io.signal), proxy.over])
  await proxy.close()
  // On a port the next client may have more luck; a pipe has only one.
  return stdio && troubled ? 4 : 0
}
