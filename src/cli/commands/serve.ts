/** `vivarium serve`: a file that exports a server, over stdio or HTTP; with `--watch` every change is served at once. */
import cluster from 'node:cluster'
import { durationText } from '../../core/clock.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { given } from '../../jsonrpc/message.ts'
import { portOf } from '../arguments.ts'
import { CliError, type Io } from '../io.ts'
import { printerOf } from '../print.ts'
import type { Verb, VerbCall } from '../program.ts'
import { addressesAt, type HttpPlace, serveOverHttp } from '../serving/http.ts'
import { serveOverStdio } from '../serving/stdio.ts'
import { say } from '../terminal/text.ts'

/** The options of `vivarium serve`. */
interface ServeOptions extends HttpPlace {
  /** Over standard input and output instead of HTTP. */
  readonly stdio?: boolean
  /** Serve the file again after every change. */
  readonly watch?: boolean
  readonly format: 'text' | 'json'
}

/** `vivarium serve`. */
export const serve: Verb = (command, io) => {
  command
    .argument('<file>', 'exports the server, as default or as `server`; .ts or .js')
    .option('--stdio', 'Over standard input and output')
    .option('--port <number>', 'Over HTTP at this port; 0 takes any that is free (default: 3000)', { parse: portOf })
    .option('--host <name>', 'The address to listen at', { fallback: '127.0.0.1' })
    .option('--hosts <name>', 'Answer to this Host name, too: api.example.com; * takes any', { repeated: true })
    .option('--path <path>', 'The path of the endpoint', { fallback: '/mcp' })
    .option('--sse', 'Also the old pair of endpoints of 2024-11-05, at /sse')
    .option('--ws', 'Also WebSockets, at /ws (needs the package ws)')
    .option('--unprotected', 'Let everybody in who reaches --host')
    .option('--issuer <url>', 'Let in who has a token of this OAuth authorization server')
    .option('--resource <url>', 'With --issuer: the address for which tokens must be made (default: where it listens)')
    .option('--scope <name>', 'With --issuer: a scope that every request needs', { repeated: true })
    .option('--watch', 'Load the file again when it or a file beside it changes')
    .note(
      'With --watch the port stays open and calls that run are finished. Over stdio the session goes on. Over HTTP clients of\n2026-07-28 notice nothing; sessions of older ones are found again where the server has a store, else the client opens a new one.',
    )
    .examples([
      ['vivarium serve server.ts --watch', 'while you write it'],
      ['vivarium serve server.ts --stdio', 'as an editor would start it'],
      [
        'vivarium serve server.ts --host 0.0.0.0 --issuer https://login.example --resource https://notes.example/mcp',
        'for others',
      ],
      ['vivarium serve server.ts --port 0 --format json', 'prints {"url": …, "port": …}'],
    ])
    .action<ServeOptions>(call => run(call, io))
}

/** Serves the file over stdio or HTTP, and again after every change with `--watch`. */
function run({ words: [file = ''], options }: VerbCall<ServeOptions>, io: Io): Promise<number> {
  const { stdio = false, port, watch = false, format } = options
  const { aside, json, line, paint } = printerOf(io)
  if (stdio && port !== undefined) throw new CliError('--stdio and --port exclude each other', 'Leave one out')
  // Whoever serves a file writes it: a tool without a description, and the like, is for him.
  process.env['VIVARIUM_LOG'] ??= 'warn'
  const note = (text: string): void => aside.note(text)
  if (stdio) return serveOverStdio(file, io, watch ? note : undefined)
  const ready = (at: { readonly url: string; readonly port: number }): void => {
    if (cluster.isWorker) return
    if (format === 'json') return json(at, true)
    line(say`${clip(file)} is served at ${paint.name(at.url)}`)
    for (const address of addressesAt(options.host)) {
      const url = new URL(at.url)
      url.hostname = address.includes(':') ? `[${address}]` : address
      note(`  and at ${url.href}`)
    }
    note(`  vivarium list ${at.url}`)
    note(`  Ctrl-C ends it${watch ? '; changes are served at once' : ''}`)
  }
  return serveOverHttp(file, options, watch ? wordsOf(options) : undefined, io, {
    ready,
    reloaded: (changed, ms) => note(`${changed} changed: reloaded in ${durationText(Math.round(ms))}`),
    failed: changed => aside.warn(`${changed} changed: it does not start, so the one before goes on`),
  })
}

/** The options as they are typed, for a worker that serves the same place. */
function wordsOf(options: ServeOptions): readonly string[] {
  const { host, hosts = [], path, issuer, resource, scope = [] } = options
  const flags = (['sse', 'ws', 'unprotected'] as const).filter(name => options[name] === true)
  const tokens = Object.entries(given({ '--issuer': issuer, '--resource': resource }))
  return [
    ...['--host', host, ...hosts.flatMap(name => ['--hosts', name]), '--path', path],
    ...tokens.flat(),
    ...scope.flatMap(name => ['--scope', name]),
    ...flags.map(name => `--${name}`),
  ]
}
