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
    .argument('<file>', 'a .ts or .js file that exports the server, as default or as `server`')
    .option('--stdio', 'Serve over standard input and output')
    .option('--port <number>', 'Serve over HTTP at this port; 0 takes a free one (default: 3000)', { parse: portOf })
    .option('--host <name>', 'Listen at this address', { fallback: '127.0.0.1' })
    .option('--hosts <name>', 'Also accept this Host name: api.example.com; * accepts any', { repeated: true })
    .option('--path <path>', 'Set the path of the endpoint', { fallback: '/mcp' })
    .option('--sse', 'Also serve the HTTP+SSE pair of 2024-11-05, at /sse')
    .option('--ws', 'Also serve WebSockets, at /ws (needs the package ws)')
    .option('--unprotected', 'Accept every caller that reaches --host')
    .option('--issuer <url>', 'Accept tokens of this OAuth authorization server')
    .option('--resource <url>', 'With --issuer: require this audience in tokens (default: the address of the server)')
    .option('--scope <name>', 'With --issuer: require this scope for every request', { repeated: true })
    .option('--watch', 'Load the file again when it, or code below its folder, changes')
    .note(
      'With --watch the port stays open and running calls finish. Over stdio the session continues. Over HTTP, clients of 2026-07-28 notice nothing; a session of an older revision continues if the server has a store, otherwise the client has to open a new one.',
    )
    .examples([
      ['vivarium serve server.ts --watch', 'Serve over HTTP while you work on the file'],
      ['vivarium serve server.ts --stdio', 'Serve over stdio, as an MCP client starts it'],
      [
        'vivarium serve server.ts --host 0.0.0.0 --issuer https://login.example --resource https://notes.example/mcp',
        'Serve for others, with OAuth tokens',
      ],
      ['vivarium serve server.ts --port 0 --format json', 'Take a free port and print {"url": …, "port": …}'],
    ])
    .action<ServeOptions>(call => run(call, io))
}

/** Serves the file over stdio or HTTP, and again after every change with `--watch`. */
function run({ words: [file = ''], options }: VerbCall<ServeOptions>, io: Io): Promise<number> {
  const { stdio = false, port, watch = false, format } = options
  const { aside, json, line, paint } = printerOf(io)
  if (stdio && port !== undefined) throw new CliError('--stdio and --port cannot be used together', 'Remove one of them')
  // Whoever serves a file writes it: a tool without a description, and the like, is for him.
  process.env['VIVARIUM_LOG'] ??= 'warn'
  const note = (text: string): void => aside.note(text)
  if (stdio) return serveOverStdio(file, io, watch ? note : undefined)
  const ready = (at: { readonly url: string; readonly port: number }): void => {
    if (cluster.isWorker) return
    if (format === 'json') return json(at, true)
    line(say`Serving ${clip(file)} at ${paint.name(at.url)}`)
    for (const address of addressesAt(options.host)) {
      const url = new URL(at.url)
      url.hostname = address.includes(':') ? `[${address}]` : address
      note(`  and at ${url.href}`)
    }
    note(`  Try: vivarium list ${at.url}`)
    note(`  Press Ctrl-C to end${watch ? '. Changes are loaded automatically' : ''}`)
  }
  return serveOverHttp(file, options, watch ? wordsOf(options) : undefined, io, {
    ready,
    reloaded: (changed, ms) => note(`${changed} changed: reloaded in ${durationText(Math.round(ms))}`),
    failed: changed => aside.warn(`${changed} changed: the new version does not start, so the previous one keeps serving`),
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
