/**
 * `vivarium test`: judges a server by raw frames, at every revision and on every carrier it can be reached by; or a client or a host,
 * which is started and given servers to connect to.
 */

import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { connect } from '../../client/index.ts'
import type { Target } from '../../client/target.ts'
import {
  allRevisions,
  badgeOf,
  type Carrier,
  exitCodeOf,
  faultOf,
  guardedIn,
  type JudgeClientOptions,
  type JudgeTarget,
  judge,
  judgeClient,
  judgeHost,
  junitOf,
  type Places,
  type Report,
  type Result,
  type RevisionId,
  startIssuer,
  tableOf,
} from '../../conformance/index.ts'
import { shellWord } from '../../core/suggestion.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { given } from '../../jsonrpc/message.ts'
import { authorizationOf, bearerAbout, type ConnectingOptions, headerAbout, headersOf, targetAbout } from '../connecting.ts'
import { CliError, type Io } from '../io.ts'
import { createProgress, printerOf } from '../print.ts'
import { connectionGroup, type Verb, type VerbCall } from '../program.ts'
import { resolveTarget, splitTarget } from '../target.ts'
import { trustOption } from '../trust/consent.ts'

/** The options of `vivarium test`. */
interface TestOptions extends Pick<ConnectingOptions, 'trust' | 'header' | 'bearerEnv' | 'auth' | 'config'> {
  readonly format: 'text' | 'json'
  /** Only these revisions. */
  readonly revision?: readonly RevisionId[]
  /** Only over these carriers. */
  readonly carrier?: readonly Carrier[]
  /** Only scenarios whose id or statement fits. */
  readonly only?: RegExp
  /** Call tools that may write, too. */
  readonly allowWrites?: boolean
  /** The file for the results as JUnit XML. */
  readonly junit?: string
  /** The file for the badge. */
  readonly badge?: string
  /** The file for the whole report. */
  readonly report?: string
  /** The same server over the old pair of HTTP endpoints. */
  readonly sse?: string
  /** The same server over a WebSocket. */
  readonly ws?: string
  /** Say what was skipped, and why. */
  readonly skipped?: boolean
  /** The command of a client to judge instead of a server. */
  readonly client?: string
  /** The command of a host to judge instead of a server. */
  readonly host?: string
  /** The port at which the kit plays the authorization server. */
  readonly issuer?: number
  /** Scopes of the tokens that the kit makes. */
  readonly scope?: readonly string[]
}

/** The names that `--carrier` takes. */
const carriers: readonly Carrier[] = ['stdio', 'http', 'sse', 'websocket']

/** `vivarium test`. */
export const test: Verb = (command, io) => {
  command
    .argument('[target]', targetAbout)
    .option('--revision <id>', 'Test only this revision', { repeated: true, parse: oneOf(allRevisions) })
    .option('--carrier <name>', 'Test only over this transport: stdio, http, sse or websocket', {
      repeated: true,
      parse: oneOf(carriers),
    })
    .option('--only <pattern>', 'Run only scenarios whose id or statement matches this regular expression', { parse: pattern })
    .option('--allow-writes', 'Also call tools that may write')
    .option('--sse <url>', 'Also test the same server over the HTTP+SSE pair at this address')
    .option('--ws <url>', 'Also test the same server over a WebSocket at this address')
    .option('--client <command>', 'Test a client instead: a program that takes the address of a server as its last argument')
    .option('--host <command>', 'Test an MCP Live host instead, started in the same way')
    .option('--issuer <port>', 'Act as the authorization server that the server trusts, at http://127.0.0.1:PORT', {
      parse: portNumber,
    })
    .option('--scope <name>', 'With --issuer: a scope that the server requires', { repeated: true })
    .option('--skipped', 'Also print which scenarios were skipped, and why')
    .option('--report <file>', 'Write the whole report as JSON')
    .option('--junit <file>', 'Write the results as JUnit XML')
    .option('--badge <file>', 'Write a badge as JSON')
  trustOption(command, connectionGroup)
    .option('--config <file>', 'Look the name up in this config file only', { group: connectionGroup })
    .option('--header <line>', headerAbout, { repeated: true, group: connectionGroup })
    .option('--bearer-env <NAME>', bearerAbout, { group: connectionGroup })
    .option('--no-auth', 'Do not sign in when the server asks for it: test what a stranger sees', { group: connectionGroup })
    .note(
      'Exit codes: 0 nothing failed, 1 something failed, 3 nothing failed but the server requires credentials for the rest, 4 the server cannot be reached.\nOnly tools that say that they only read, and known fixtures of conformance suites, are called; --allow-writes also calls the others.',
    )
    .examples([
      ['vivarium test https://example.com/mcp', 'Test a server at an address'],
      ['vivarium test -- node server.js', 'Test a program'],
      ['vivarium test ./server.ts --revision 2025-11-25 --only base/tools', 'Test one revision and a part of the scenarios'],
      ['vivarium test notes --junit results.xml --badge badge.json', 'Write files for a build'],
      ['vivarium test https://example.com/mcp --bearer-env TOKEN', 'Test a server that requires a token'],
      ['vivarium test --client "node my-client.js"', 'Test a client'],
    ])
    .action<TestOptions>(call => run(call, io))
}

/** Reads one of a list of known words. */
function oneOf<T extends string>(known: readonly T[]): (text: string) => T {
  return text => {
    const found = known.find(each => each === text)
    if (found === undefined) throw new TypeError(`"${clip(text)}" is not known. Write one of ${known.join(', ')}`)
    return found
  }
}

/** A regular expression, as it is typed. */
function pattern(text: string): RegExp {
  try {
    return new RegExp(text)
  } catch (cause) {
    throw new TypeError(`"${clip(text)}" is not a valid regular expression`, { cause })
  }
}

/** A port that can be named beforehand, so not 0. */
function portNumber(text: string): number {
  const port = Number(text)
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new TypeError(`"${clip(text)}" is not a port. Write a number from 1 to 65535`)
  return port
}

/** Judges, writes the report files, prints the table, and gives the exit code. */
async function run(call: VerbCall<TestOptions>, io: Io): Promise<number> {
  // Into a file or a log it would be a line for every second.
  const bar = io.errors.isTTY === true ? createProgress(io) : { show: () => {}, end: () => {} }
  const { options } = call
  try {
    const caller = judgeCaller(options, { signal: io.signal, onResult: watching(bar) })
    const { report, again } = await (caller?.then(told => ({ report: refuseUnheard(told), again: callerAgain(options) })) ??
      judgeServer(call, io, bar))
    bar.end()
    if (report.results.length === 0)
      throw new CliError('No scenario was run', 'No scenario matches --revision, --carrier and --only: remove one of them')
    await write(report, options)
    if (options.format === 'json') printerOf(io).json(report)
    else {
      const { line } = printerOf(io)
      for (const each of tableOf(report, { skipped: options.skipped === true, again })
        .trimEnd()
        .split('\n'))
        line(each)
    }
    // What was stopped proves nothing.
    return io.signal.aborted ? 130 : exitCodeOf(report)
  } finally {
    bar.end()
  }
}

/** A report on a server, and the command that judges it again with other options. It is judged a second time with a token, where it lets nobody in without one. */
async function judgeServer(call: VerbCall<TestOptions>, io: Io, bar: ReturnType<typeof createProgress>) {
  const { options } = call
  const issuer = options.issuer === undefined ? undefined : await startIssuer({ port: options.issuer })
  const resolved = await resolveTarget(splitTarget(call).target, io, { config: options.config, trust: options.trust })
  try {
    const target = targetOf(resolved.target, options)
    const auth = issuer?.trial({ resource: addressOf(resolved.target), scopes: options.scope ?? [] })
    const headers = headersOf(resolved, options, io)
    const judged = (more: Readonly<Record<string, string>>): Promise<Report> =>
      judge(target, {
        ...given({ revisions: options.revision, carriers: options.carrier, only: options.only, auth }),
        headers: { ...headers, ...more },
        allowWrites: options.allowWrites === true,
        signal: io.signal,
        onResult: watching(bar),
      })
    const first = await judged({})
    const token = guardedIn(first) === undefined || !options.auth ? undefined : await tokenFor(resolved.target, headers, io)
    const report = token === undefined ? first : await judged({ authorization: token })
    refuse(report, resolved.label)
    return { report, again: (flags: string) => againOf(resolved.again, flags) }
  } finally {
    await issuer?.close()
  }
}

/** Options stand before the `--` of a program. */
function againOf(target: string, flags: string): string {
  return target.startsWith('-- ') ? `vivarium test ${flags} ${target}` : `vivarium test ${target} ${flags}`
}

/** The command that judges the same client or host again. */
function callerAgain({ client, host }: TestOptions): (options: string) => string {
  const words = client === undefined ? `--host ${shellWord(host ?? '')}` : `--client ${shellWord(client)}`
  return flags => `vivarium test ${words} ${flags}`
}

/** Tokens are made for the address that the server is reached by. */
function addressOf(target: Target): string {
  if (typeof target === 'string' || target instanceof URL) return String(target)
  throw new CliError('--issuer needs a server at a URL', 'Serve it over HTTP and pass its address')
}

/** Where else the same server serves is said beside the target. */
function targetOf(target: Target, { sse, ws, carrier }: TestOptions): JudgeTarget {
  const places: Places = given({ sse, websocket: ws })
  if (typeof target === 'string' || target instanceof URL) {
    const isSocket = /^wss?:/i.test(String(target))
    if (isSocket) return { ...places, websocket: target }
    // Who asks for the old pair by name means this address.
    return sse === undefined && carrier?.includes('sse') === true
      ? { ...places, http: target, sse: target }
      : { ...places, http: target }
  }
  if (!('command' in target))
    throw new CliError('Only a URL or a program can be tested', 'Pass an address, a file, or -- and a program')
  const { command, args, env, cwd } = target
  return { ...places, stdio: { command, ...given({ args, env, cwd }) } }
}

/** Shows how many results there are while they come. */
function watching(bar: ReturnType<typeof createProgress>): (result: Result) => void {
  let done = 0
  return ({ test_id, revision, carrier }) => bar.show({ progress: ++done, message: `${revision} ${carrier} ${test_id}` })
}

/** A server that cannot be reached has not failed: it was not judged. What its guard shows was. */
function refuse(report: Report, label: string): void {
  const found = faultOf(report)
  if (found === undefined || found.fault === 'guarded') return
  throw new CliError(`${label} cannot be tested: ${clip(found.message, 300)}`, `Run vivarium doctor ${label} to see why`, {
    exit: 4,
  })
}

/** Writes the report in the formats that were asked for. */
async function write(report: Report, { report: file, junit, badge }: TestOptions): Promise<void> {
  const save = async (path: string | undefined, text: () => string): Promise<void> => {
    if (path === undefined) return
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, text())
  }
  await save(file, () => `${JSON.stringify(report, null, 2)}\n`)
  await save(junit, () => junitOf(report))
  await save(badge, () => `${JSON.stringify(badgeOf(report), null, 2)}\n`)
}

// `vivarium test --client` and `--host`: judges a program that connects, by servers that the kit plays.

/** Undefined: neither is asked for. */
export function judgeCaller(
  { client, host, revision, carrier, only }: Pick<TestOptions, 'client' | 'host' | 'revision' | 'carrier' | 'only'>,
  more: { readonly signal: AbortSignal; readonly onResult: (result: Result) => void },
): Promise<Report> | undefined {
  if (client === undefined && host === undefined) return undefined
  if (client !== undefined && host !== undefined)
    throw new CliError(
      '--client and --host cannot be used together',
      'Run vivarium test --client "COMMAND", then vivarium test --host "COMMAND"',
    )
  const options: JudgeClientOptions = { ...more, ...given({ revisions: revision, carriers: carrier, only }) }
  return client === undefined ? judgeHost({ command: host ?? '' }, options) : judgeClient({ command: client }, options)
}

/** A program that never asked for anything has not failed, where nobody named a revision: it was not judged. */
export function refuseUnheard(report: Report): Report {
  const [first] = report.results
  const isCell = ({ test_id, status }: Result): boolean => test_id.startsWith('cell/') && status === 'skipped'
  if (first === undefined || !report.results.every(isCell)) return report
  throw new CliError(
    `The program cannot be tested at any revision. ${clip(first.message, 300)}`,
    'The program is started with the address of a server as its last argument and must connect to it. Start it yourself with such an address to see what it does',
    { exit: 4 },
  )
}

// A token for a server that wants one: of a sign-in that was made before, or of one in the browser where somebody can be asked.

/** How long somebody may take to sign in with the browser. */
const waitMs = 300_000

/** The header that lets us in; undefined: there is none to be had, and the guard is all that can be judged. */
export async function tokenFor(target: Target, headers: Readonly<Record<string, string>>, io: Io): Promise<string | undefined> {
  const auth = authorizationOf(target, headers, io)
  if (auth === undefined) return undefined
  let sent: string | undefined
  const watched: typeof fetch = (url, init) => {
    sent = new Headers(init?.headers).get('authorization') ?? sent
    return fetch(url, init)
  }
  try {
    const signal = AbortSignal.any([io.signal, AbortSignal.timeout(waitMs)])
    await using _ = await connect(target, { auth, headers, fetch: watched, signal })
  } catch {
    // Whether it lets us in is for the kit to say: a server that fails here may do so for what is judged.
    return undefined
  }
  return sent
}
