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
import { clip } from '../../jsonrpc/limits.ts'
import { given } from '../../jsonrpc/message.ts'
import { authorizationOf, type ConnectingOptions, headersOf } from '../connecting.ts'
import { CliError, type Io } from '../io.ts'
import { createProgress, printerOf } from '../print.ts'
import type { Verb, VerbCall } from '../program.ts'
import { resolveTarget, splitTarget } from '../target.ts'
import { shellWord } from '../terminal/text.ts'
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
  trustOption(command)
    .argument('[target]', 'the server')
    .option('--revision <id>', 'Only this revision; may be given again', { repeated: true, parse: oneOf(allRevisions) })
    .option('--carrier <name>', 'Only over stdio, http, sse or websocket; may be given again', {
      repeated: true,
      parse: oneOf(carriers),
    })
    .option('--only <pattern>', 'Only scenarios whose id or statement fits', { parse: pattern })
    .option('--allow-writes', 'Call tools that may write, too')
    .option('--sse <url>', 'The same server over the old pair of HTTP endpoints')
    .option('--ws <url>', 'The same server over a WebSocket')
    .option('--header <line>', `A header of every request: 'X-Key: \${KEY}'; variables are filled in here, not by the shell`, {
      repeated: true,
    })
    .option('--bearer-env <NAME>', 'The variable that holds a bearer token')
    .option('--no-auth', 'Do not sign in where the server asks for it: judge what a stranger sees')
    .option('--client <command>', 'Judge a client instead: a program that gets the address of a server as its last word')
    .option('--host <command>', 'Judge a host of MCP Live instead, started in the same way')
    .option(
      '--issuer <port>',
      'Be the authorization server that the server trusts, http://127.0.0.1:PORT, with tokens of every kind',
      { parse: portNumber },
    )
    .option('--scope <name>', 'With --issuer: a scope that the server wants; may be given again', { repeated: true })
    .option('--config <file>', 'Look names up in this file alone')
    .option('--skipped', 'Also say what was skipped, and why')
    .option('--report <file>', 'Write the whole report as JSON')
    .option('--junit <file>', 'Write the results as JUnit XML')
    .option('--badge <file>', 'Write a badge as JSON')
    .note(
      'Exit code 0: nothing failed; 1: something did; 3: nothing did, but the server wants credentials for the rest; 4: nobody is there.\nTools are called only if they say that they read, or are known fixtures of conformance suites; --allow-writes lifts that.',
    )
    .examples([
      ['vivarium test https://example.com/mcp', 'over the network'],
      ['vivarium test -- node server.js', 'a program'],
      ['vivarium test ./server.ts --revision 2025-11-25 --only base/tools', 'some of it'],
      ['vivarium test notes --junit results.xml --badge badge.json', 'for a build'],
      ['vivarium test https://example.com/mcp --bearer-env TOKEN', 'behind a guard'],
      ['vivarium test --client "node my-client.js"', 'a client'],
    ])
    .action<TestOptions>(call => run(call, io))
}

/** Reads one of a list of known words. */
function oneOf<T extends string>(known: readonly T[]): (text: string) => T {
  return text => {
    const found = known.find(each => each === text)
    if (found === undefined) throw new TypeError(`there is no ${clip(text)}; known are ${known.join(', ')}`)
    return found
  }
}

/** A regular expression, as it is typed. */
function pattern(text: string): RegExp {
  try {
    return new RegExp(text)
  } catch (cause) {
    throw new TypeError(`${clip(text)} is no regular expression`, { cause })
  }
}

/** A port that can be named beforehand, so not 0. */
function portNumber(text: string): number {
  const port = Number(text)
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new TypeError('give the number of a port')
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
      throw new CliError('There is nothing to judge', 'No scenario fits the revisions, carriers and pattern')
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
  throw new CliError('--issuer is for servers that are reached by a URL')
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
  if (!('command' in target)) throw new CliError('Only a URL or a program can be judged')
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
  throw new CliError(`${label} cannot be judged: ${clip(found.message, 300)}`, `vivarium doctor ${label}`, { exit: 4 })
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
      '--client and --host judge one program each',
      'vivarium test --client "COMMAND", then vivarium test --host "COMMAND"',
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
    `The program cannot be judged at any revision. ${clip(first.message, 300)}`,
    'It is started with the address of a server as its last word, and has to connect to it: try it by hand with one',
    { exit: 4 },
  )
}

// A token for a server that wants one: of a sign-in that was made before, or of one in the browser where somebody can be asked.

/** How long somebody may take to sign in with the browser. */
const patienceMs = 300_000

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
    const signal = AbortSignal.any([io.signal, AbortSignal.timeout(patienceMs)])
    await using _ = await connect(target, { auth, headers, fetch: watched, signal })
  } catch {
    // Whether it lets us in is for the kit to say: a server that fails here may do so for what is judged.
    return undefined
  }
  return sent
}
