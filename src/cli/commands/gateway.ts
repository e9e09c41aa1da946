/** `vivarium gateway`: one endpoint in front of many servers, as a file says; with `--check` what that file comes to. */
import { setFlagsFromString } from 'node:v8'
import { type Duration, toMilliseconds } from '../../core/clock.ts'
import { createLog } from '../../core/log.ts'
import type { Gateway, GatewayConfig } from '../../gateway/index.ts'
import type { TrustSettings } from '../../gateway/trust/settings.ts'
import { messageOf } from '../../stores/store.ts'
import { portOf } from '../arguments.ts'
import type { AnswerOptions } from '../gateway/approvals.ts'
import type { AuditReportOptions } from '../gateway/reports.ts'
import { CliError, type Io, untilInterrupted } from '../io.ts'
import { printerOf } from '../print.ts'
import type { CommandLike, Verb, VerbCall } from '../program.ts'
import { say, type Words } from '../terminal/text.ts'

/** The options of `vivarium gateway`. */
interface GatewayOptions {
  /** Say what the file comes to, and serve nothing. */
  readonly check?: boolean
  /** Serve one client over standard input and output. */
  readonly stdio?: boolean
  /** The server at which the user signs in. */
  readonly signIn?: string
  /** The server whose changed command or address is approved. */
  readonly approve?: string
  /** Undefined: as the file says. */
  readonly port?: number
  /** Undefined: as the file says. */
  readonly host?: string
  /** Let everybody in who reaches the address. */
  readonly unprotected?: boolean
  readonly format: 'text' | 'json'
}

/** `vivarium gateway`, and its words for whoever runs one. */
export const gateway: Verb = (command, io) => {
  answering(command.command('approvals', 'What waits for a yes: calls, changed tools, changed commands'), false, io)
  answering(command.command('pins', 'Tools and commands that are not as they were first seen, old and new'), true, io)
  status(command.command('status', 'Whether it is ready, and how each of its servers is'), io)
  auditing(command.command('audit', 'What was done, by whom; --verify: whether anybody changed what was written'), io)
  command
    .argument('<file>', 'YAML or JSON: include, servers, listen, store, auth, clients, rules, pins, audit')
    .option('--check', 'Say what the file comes to: servers, names, rules, mistakes. Serves nothing')
    .option('--stdio', 'Serve one client over standard input and output')
    .option('--sign-in <server>', 'Sign in with the browser at this server of the file, so that the gateway can use it')
    .option('--approve <server>', 'Take the command or address that the file has now for this server for the right one')
    .option('--port <number>', 'Over HTTP at this port; 0 takes any that is free (default: as the file says, else 7420)', {
      parse: portOf,
    })
    .option('--host <name>', 'The address to listen at (default: as the file says, else 127.0.0.1)')
    .option('--unprotected', 'Let everybody in who reaches --host; not beside auth in the file')
    .note('Servers speak whatever revision of MCP they speak, and clients theirs: the gateway translates between them.')
    .examples([
      ['vivarium gateway gateway.yaml --check', 'before you use it'],
      ['vivarium gateway gateway.yaml --sign-in notes', 'once, for a server whose entry says auth: sign-in'],
      ['vivarium gateway gateway.yaml --port 7420', 'for clients that speak HTTP'],
      ['vivarium gateway gateway.yaml --stdio', 'as the only server in the config of an editor'],
      ['vivarium gateway approvals gateway.yaml', 'what waits for you, from a second terminal'],
    ])
    .action<GatewayOptions>(call => run(call, io))
}

/** Checks the file, signs in, approves a launch, or serves until it is interrupted. */
async function run({ words: [file = ''], options }: VerbCall<GatewayOptions>, io: Io): Promise<number> {
  const { createGateway } = await import('../../gateway/index.ts')
  if (options.stdio === true && options.port !== undefined)
    throw new CliError('--stdio and --port exclude each other', 'Leave one out')
  const read = await configOf(file, io)
  const serves = options.signIn === undefined && options.approve === undefined
  const { approveLaunch, withServingFaults, launchQuestions, signIn } = await import('../gateway/config.ts')
  const config = serves ? withServingFaults(read, options) : read
  if (options.check === true) {
    const { checkGateway } = await import('../gateway/check.ts')
    return checkGateway(config, io, options.format)
  }
  refuse(config)
  if (options.signIn !== undefined) return signIn(config, options.signIn, io)
  if (options.approve !== undefined) return approveLaunch(config, options.approve, io)
  const { followFile } = await import('../gateway/follow.ts')
  const { tell, stderr } = tellingTo(io)
  await using following = await followFile(config, { env: io.env, tell })
  await using opened = await startQuietly(() =>
    createGateway({
      config: file,
      onStderr: stderr,
      onNotice: ({ message, fix }) => tell(say`${message}\n  → ${fix}`, 'warning'),
      ...(io.interactive && options.stdio !== true && { onLaunchChanged: launchQuestions(io) }),
    }),
  )
  following.open(opened)
  try {
    if (options.stdio === true) await Promise.race([opened.stdio(), untilInterrupted(io.signal)])
    else await serve(opened, config, options, io)
  } finally {
    // Nothing is to be read again while it ends.
    await following.close()
  }
  return 0
}

/** One mistake is enough: a rule that was left out would let through what it forbids. */
function refuse({ faults, file }: GatewayConfig<TrustSettings>): void {
  const [first] = faults
  if (first === undefined) return
  const more = faults.length === 1 ? '' : ` (and ${faults.length - 1} more)`
  throw new CliError(
    `${first.file}:${first.line}: ${first.why.message}${more}`,
    `${first.why.fix}; vivarium gateway ${file} --check shows all`,
  )
}

/** Listens over HTTP and says where, until it is interrupted. */
async function serve(opened: Gateway, config: GatewayConfig<TrustSettings>, options: GatewayOptions, io: Io): Promise<void> {
  const { line, json, paint, aside } = printerOf(io)
  const { listen } = config.frame
  const listening = await opened.listen({
    port: options.port ?? listen.port ?? 7420,
    ...(options.host !== undefined && { host: options.host }),
    ...(options.unprotected === true && { auth: 'none' as const }),
  })
  const { url, port } = listening
  if (options.format === 'json') json({ url, port }, true)
  else {
    line(say`${servedOf(opened)} at ${paint.name(url)}`)
    aside.note(`  vivarium list ${url}`)
    aside.note('  Ctrl-C ends it')
  }
  await untilInterrupted(io.signal)
}

/** How many are there now. Others may still come up. */
function servedOf(opened: Gateway): string {
  const all = opened.upstreams()
  const up = all.filter(({ status }) => status === 'up').length
  const rest = up === all.length ? '' : ` (${up} up so far)`
  return all.length === 1 ? `1 server${rest} is served` : `${all.length} servers${rest} are served`
}

// What `vivarium gateway` tells beside its work, on standard error: lines for people, or records where its log is JSON.

/** Where the gateway tells what happens beside its work. */
interface Telling {
  /** A sentence of the gateway itself. */
  readonly tell: (text: Words, kind: 'done' | 'warning' | 'mistake') => void
  /** A line that a server wrote on standard error. */
  readonly stderr: (server: string, line: string) => void
}

/** The level of the log for each kind of sentence. */
const severities = { done: 'info', warning: 'warn', mistake: 'error' } as const

/** Lines for people on standard error, or JSON where `VIVARIUM_LOG` asks for that. */
function tellingTo(io: Io): Telling {
  const { aside } = printerOf(io)
  if (/,json$/.test(io.env['VIVARIUM_LOG'] ?? '')) {
    const log = createLog({ format: 'json', write: line => aside.line(line) })
    return {
      tell: (text, kind) => log[severities[kind]]('gateway', { message: String(text) }),
      stderr: (server, line) => log.info('stderr', { server, line }),
    }
  }
  const paints = { done: aside.paint.dim, warning: aside.paint.warn, mistake: aside.paint.bad }
  const tell: Telling['tell'] = (text, kind) => aside.line(paints[kind](text))
  return { tell, stderr: (server, line) => tell(`${server}: ${line}`, 'done') }
}

/** Opens a gateway, with little memory for what is made as it starts. Nobody waits here until it is ready. */
async function startQuietly(open: () => Promise<Gateway>): Promise<Gateway> {
  setFlagsFromString('--semi-space-growth-factor=1')
  const relax = (): void => setFlagsFromString('--semi-space-growth-factor=2')
  try {
    const opened = await open()
    void opened.ready().then(relax, relax)
    return opened
  } catch (error) {
    relax()
    throw error
  }
}

// The words behind `vivarium gateway` for whoever runs one: what waits, what changed, what was done. Each works beside the gateway, on its store.

/** The help of the argument that all words below have. */
const fileAbout = 'The file of the gateway'
/** The rules of `--format`, for words that declare it themselves. */
const formats = { choices: ['text', 'json'], fallback: 'text' } as const

/** `approvals` and `pins`: the same options, with another list. */
function answering(command: CommandLike, pins: boolean, io: Io): void {
  command
    .argument('<file>', fileAbout)
    .option('--approve <id>', `Say yes to it; may be repeated${pins ? '; all: to all that are listed' : ''}`, { repeated: true })
    .option('--refuse <id>', 'Say no to it', { repeated: true })
    .option('--show <id>', 'Show all of it, however long; with --approve, before it is approved', { repeated: true })
    .option('--as <name>', 'Who answers, for the audit log (default: the user of this machine)')
    .option('--format <kind>', 'text for people, json for programs', formats)
    .action<AnswerOptions>(async ({ words: [file = ''], options }: VerbCall<AnswerOptions>) => {
      const { approvals } = await import('../gateway/approvals.ts')
      return approvals(await configOf(file, io), pins, options, io)
    })
}

/** `vivarium gateway status`. */
function status(command: CommandLike, io: Io): void {
  command
    .argument('<file>', fileAbout)
    .option('--port <number>', 'Where it listens (default: as the file says, else 7420)', { parse: portOf })
    .option('--format <kind>', 'text for people, json for programs', formats)
    .action<{ readonly port?: number; readonly format: 'text' | 'json' }>(async ({ words: [file = ''], options }) => {
      const { showStatus } = await import('../gateway/reports.ts')
      return showStatus(await configOf(file, io), options, io)
    })
}

/** `vivarium gateway audit`. */
function auditing(command: CommandLike, io: Io): void {
  command
    .argument('<file>', fileAbout)
    .option('--since <time>', 'From then on: 2h, 3d (ago), or a date (default: 1d)', { parse: timeOf })
    .option('--until <time>', 'Before then', { parse: timeOf })
    .option('--client <name>', 'Of this client')
    .option('--subject <id>', 'Of whom tokens name so')
    .option('--server <name>', 'At this server')
    .option('--tool <name>', 'About this tool, by its own name or that which clients see')
    .option('--outcome <word>', 'success, failure, refused, replayed, held, approved')
    .option('--limit <number>', 'The last so many (default: 100)', { parse: countOf })
    .option('--verify', 'Compute the chain anew, and fail where a line is not what was written')
    .option('--format <kind>', 'text for people, json for programs: a line each', formats)
    .examples([['vivarium gateway audit gateway.yaml --tool delete_file --since 2d', 'who deleted that yesterday?']])
    .action<Partial<AuditReportOptions>>(async ({ words: [file = ''], options }) => {
      const { showAudit } = await import('../gateway/reports.ts')
      const config = await configOf(file, io)
      return showAudit(config, { format: 'text', since: timeOf('1d'), limit: 100, ...options }, io)
    })
}

/** A number of lines, as it is typed. */
function countOf(text: string): number {
  const count = Number(text)
  if (Number.isInteger(count) && count > 0 && count <= 100_000) return count
  throw new TypeError('Give a number from 1 to 100000')
}

/** Mistakes in rules do not matter here. */
async function configOf(file: string, io: Io): Promise<GatewayConfig<TrustSettings>> {
  const { readGatewayFile } = await import('../../gateway/index.ts')
  return readGatewayFile(file, { env: io.env }).catch(error => {
    throw new CliError(messageOf(error), 'Give the path of a YAML or JSON file')
  })
}

/** A date, or how long ago. */
function timeOf(text: string): number {
  if (/^\d+(\.\d+)?(ms|s|m|h|d)$/.test(text)) return Date.now() - toMilliseconds(text as Duration)
  const time = Date.parse(text)
  if (Number.isNaN(time))
    throw new TypeError(`"${text.slice(0, 40)}" is no time: write 2h, 1d, 2026-07-28 or 2026-07-28T12:00:00Z`)
  return time
}
