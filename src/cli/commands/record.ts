/** `vivarium record`: stands between a client and a server and writes one file of all that passes. */

import { lstatSync } from 'node:fs'
import { clip } from '../../jsonrpc/limits.ts'
import { given } from '../../jsonrpc/message.ts'
import { startRecording } from '../../testing/index.ts'
import { portOf } from '../arguments.ts'
import { type AccessOptions, accessOptions, headersOf } from '../connecting.ts'
import { CliError, cliFailureOf, type Io, untilInterrupted } from '../io.ts'
import { printerOf } from '../print.ts'
import type { Verb, VerbCall } from '../program.ts'
import { resolveTarget, splitTarget } from '../target.ts'
import { say } from '../terminal/text.ts'
import { trustOption } from '../trust/consent.ts'

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
    trustOption(command)
      .argument('[target]', 'the server')
      .option('--out <file>', 'The tape', { fallback: 'session.tape' })
      .option('--force', 'Write over a tape that is there')
      .option(
        '--stdio',
        'The client speaks on standard input and output: put this command in its config in the place of the server',
      )
      .option('--port <number>', 'The client comes over HTTP at this port (default: any that is free)', { parse: portOf })
      .option('--redact <path>', 'Leave the values of this member out: params.arguments.password, **.apiKey', { repeated: true }),
  )
    .option('--sse', 'The server speaks by the pair of endpoints of 2024-11-05 (with --stdio)')
    .option('--max-mb <number>', 'The most megabytes of the tape (default: 256)', { parse: sizeOf })
    .note(
      'Headers that hold secrets are never kept; what else is secret you name by --redact. Other members are written as they pass.',
    )
    .examples([
      ['vivarium record https://host/mcp --port 7000', 'point the client at http://127.0.0.1:7000/mcp'],
      ['vivarium record --stdio --force --out notes.tape -- node notes.js', 'as the command of a client that starts its servers'],
    ])
    .action<RecordOptions>(call => run(call, io))
}

/** A number of megabytes, as it is typed. */
function sizeOf(text: string): number {
  const size = Number(text)
  if (size > 0 && Number.isFinite(size)) return size
  throw new TypeError(`${clip(text)} is no number of megabytes`)
}

/** Stands between client and server until one of them ends or it is interrupted. */
async function run(call: VerbCall<RecordOptions>, io: Io): Promise<number> {
  const { out, stdio = false, port, redact, maxMb, sse, env, format } = call.options
  if (stdio && port !== undefined) throw new CliError('--stdio and --port exclude each other', 'Leave one out')
  // A link is no file of ours, wherever it leads.
  const there = lstatSync(out, { throwIfNoEntry: false })
  if (there !== undefined && (call.options.force !== true || there.isSymbolicLink()))
    throw new CliError(`There is a file ${clip(out)} already`, 'Name another by --out, or write over it with --force')
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
    line(say`${resolved.label} is recorded into ${clip(out)}; its client connects to ${paint.name(proxy.url)}`)
    aside.note('  Ctrl-C ends it')
  }
  await Promise.race([untilInterrupted(io.signal), proxy.over])
  await proxy.close()
  // On a port the next client may have more luck; a pipe has only one.
  return stdio && troubled ? 4 : 0
}
