/** `vivarium replay`: a tape sent again, with what differs; or a tape as a server, with what goes wrong. */

import { clip, echo } from '../../jsonrpc/limits.ts'
import { given } from '../../jsonrpc/message.ts'
import { messageOf } from '../../stores/store.ts'
import { openTape, replayTape, serveTape, type Tape, type TapeDifference } from '../../testing/index.ts'
import { portOf } from '../arguments.ts'
import { type AccessOptions, accessOptions, headersOf, milliseconds } from '../connecting.ts'
import { CliError, type Io, untilInterrupted } from '../io.ts'
import { type Printer, printerOf } from '../print.ts'
import type { Verb, VerbCall } from '../program.ts'
import { resolveTarget } from '../target.ts'
import { say } from '../terminal/text.ts'
import type { WebOptions } from '../web-options.ts'

/** The options of `vivarium replay`. */
interface ReplayOptions extends AccessOptions, Pick<WebOptions, 'web' | 'open'> {
  /** The server to which the tape is sent. */
  readonly against?: string
  /** Serve the tape as a mock. */
  readonly serve?: boolean
  /** Serve over standard input and output. */
  readonly stdio?: boolean
  /** Where the mock listens; undefined takes any that is free. */
  readonly port?: number
  /** The pace of the mock; 1 is that of the tape, undefined does not wait. */
  readonly speed?: number
  /** What goes wrong on purpose, as `KIND[=VALUE][@METHOD][:PROBABILITY]`. */
  readonly fault?: readonly string[]
  /** The same seed brings the same faults. */
  readonly seed?: number
  /** Members that may differ. */
  readonly ignore?: readonly string[]
  /** How long to wait for what was said then, in milliseconds. */
  readonly timeout?: number
  readonly format: 'text' | 'json'
}

/** `vivarium replay`. */
export const replay: Verb = (command, io) => {
  accessOptions(
    command
      .argument('<tape>', 'a file that vivarium record has written')
      .option(
        '--against <target>',
        'Send the tape to this server, or to a program after --; exit code 1 if it answers differently',
      )
      .option('--ignore <path>', 'Ignore differences in this member: result.serverInfo.version, **.elapsed', { repeated: true })
      .option('--timeout <time>', 'Wait this long for a recorded message: 500ms, 30s, 5m (default: 30s)', {
        parse: milliseconds,
      })
      .option('--serve', 'Serve the tape as a mock server, with the recorded answers')
      .option('--stdio', 'With --serve: serve over standard input and output')
      .option('--web', 'Show the frames of the tape in the browser')
      .option('--no-open', 'With --web: do not open the browser')
      .option('--port <number>', 'With --serve: serve over HTTP at this port (default: any free port); with --web: the console', {
        parse: portOf,
      })
      .option('--speed <factor>', 'With --serve: set the pace; 1 is that of the tape (default: no waiting)', { parse: numberOf })
      .option('--fault <rule>', 'With --serve: inject a fault, KIND[=VALUE][@METHOD][:PROBABILITY]', { repeated: true })
      .option('--seed <number>', 'With --serve: repeat the faults of this seed (default: 1)', { parse: numberOf }),
  )
    .note(
      'Kinds of faults: delay=200ms, drop, duplicate, reorder, cut, error=-32603, garbage. A method may end in *.\nIds, times, cursors and tokens of the protocol may always differ.',
    )
    .examples([
      ['vivarium replay notes.tape --against ./server.ts', 'Does the new version answer as the old one did?'],
      ['vivarium replay notes.tape --serve --port 7000', 'Serve the recorded answers, without the server'],
      ['vivarium replay notes.tape --web', 'See the recorded frames in the browser'],
      [
        'vivarium replay notes.tape --serve --stdio --fault drop@tools/call:0.2 --seed 7',
        'Lose one in five answers to tool calls',
      ],
    ])
    .action<ReplayOptions>(call => run(call, io))
}

/** A number from 0 up, as it is typed. */
function numberOf(text: string): number {
  const number = Number(text)
  if (text.trim() !== '' && number >= 0 && Number.isFinite(number)) return number
  throw new TypeError(`"${clip(text)}" is not a number from 0 up`)
}

/** Sends the tape to a server, or serves it. */
async function run(call: VerbCall<ReplayOptions>, io: Io): Promise<number> {
  const { words, command, options } = call
  const [file = ''] = words
  const target = command !== undefined ? ['--', ...command] : options.against === undefined ? undefined : [options.against]
  if ([target !== undefined, options.serve === true, options.web === true].filter(Boolean).length !== 1)
    throw new CliError(
      'Pass exactly one of --against, --serve and --web',
      'Use --against TARGET to compare, --serve to serve the tape, or --web to see it',
    )
  const tape = await read(file)
  if (tape.cut)
    printerOf(io).aside.line(`vivarium: The last line of ${clip(file)} is incomplete; everything before it is replayed`)
  if (options.web === true) {
    const { webConsole } = await import('../web-console.ts')
    return webConsole({ tape: { tape, name: file } }, options, io)
  }
  return target === undefined ? serve(tape, call, io) : against(tape, target, call, io)
}

/** Opens a tape. Throws a failure that says how to make one where it is not there. */
async function read(file: string): Promise<Tape> {
  try {
    return await openTape(file)
  } catch (error) {
    const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    const message = missing ? `The file ${clip(file)} does not exist` : messageOf(error)
    throw new CliError(message, missing ? 'Record one: vivarium record TARGET --out FILE' : undefined, { cause: error })
  }
}

/** Serves the tape until its client goes or it is interrupted. */
async function serve(tape: Tape, { options }: VerbCall<ReplayOptions>, io: Io): Promise<number> {
  const { stdio = false, port, speed, fault, seed, format } = options
  if (stdio && port !== undefined) throw new CliError('--stdio and --port cannot be used together', 'Remove one of them')
  const mock = await serveTape(tape, {
    client: stdio ? { stdio: true } : given({ port }),
    ...given({ speed, faults: fault, seed }),
  })
  const { json, line, paint } = printerOf(io)
  if (mock.url !== undefined && format === 'json') json({ url: mock.url }, true)
  else if (mock.url !== undefined) line(say`Serving the tape at ${paint.name(mock.url)}`)
  await Promise.race([untilInterrupted(io.signal), mock.over])
  await mock.close()
  return 0
}

/** Sends the tape to a server and prints what it answers otherwise. */
async function against(
  tape: Tape,
  words: readonly string[],
  { options: wanted }: VerbCall<ReplayOptions>,
  io: Io,
): Promise<number> {
  const resolved = await resolveTarget(words, io, { env: wanted.env, trust: wanted.trust })
  const headers = headersOf(resolved, wanted, io)
  const { ignore, timeout, format } = wanted
  const found = await replayTape(tape, resolved.target, { headers, ...given({ ignore, timeoutMs: timeout }) })
  const printer = printerOf(io)
  if (format === 'json') printer.json(found)
  else {
    for (const difference of found.differences) show(difference, printer)
    const count = found.differences.length
    const verdict = count === 0 ? 'no differences' : `${count} ${count === 1 ? 'difference' : 'differences'}`
    const talks = found.conversations === 1 ? '1 conversation' : `${found.conversations} conversations`
    printer.line(`${resolved.label}: ${found.sent} frames in ${talks}, ${verdict}`)
  }
  return found.differences.length === 0 ? 0 : 1
}

/** A difference: what the tape has, and what the server says now. */
function show({ conversation, line, what, path, before, after }: TapeDifference, { line: print, paint }: Printer): void {
  const place = line === 0 ? 'not on the tape' : `line ${line}`
  print(say`${paint.name(what)} (conversation ${conversation}, ${place})${path === '' ? '' : ` ${path}`}`)
  print(`  - ${before === undefined ? 'nothing' : echo(before, 400)}`)
  print(`  + ${after === undefined ? 'nothing' : echo(after, 400)}`)
}
