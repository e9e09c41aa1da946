/** `vivarium gateway`: one endpoint in front of many servers, as a file says; with `--check` what that file comes to. */
import { setFlagsFromString } from 'node:v8'
import { type Duration, toMilliseconds } from '../../core/clock.ts'
import { createLog } from '../../core/log.ts'
import type { Gateway, GatewayConfig } from '../../gateway/index.ts'
import type { TrustSettings } from '../../gateway/trust/settings.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { messageOf } from '../../stores/store.ts'
import { portOf } from '../arguments.ts'
import type { AnswerOptions } from '../gateway/approvals.ts'
import type { LinkCommandOptions } from '../gateway/console.ts'
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
  /** Serve the web console too. */
  readonly web?: boolean
  /** False: leave the browser alone. */
  readonly open?: boolean
  readonly format: 'text' | 'json'
}

/** `vivarium gateway`, and its words for whoever runs one. */
export const gateway: Verb = (command, io) => {
  answering(
    command.command('approvals', 'List and answer what waits for approval: calls, changed tools, changed commands'),
    false,
    io,
  )
  answering(command.command('pins', 'List and answer tools and commands that have changed since they were first seen'), true, io)
  status(command.command('status', 'Show whether the gateway is ready, and the state of each server'), io)
  consoleLinks(command.command('console', 'Print a new link to the web console'), io)
  auditing(command.command('audit', 'Print the audit log: who did what, and with what outcome'), io)
  command
    .argument('<file>', 'the config of the gateway, YAML or JSON')
    .option('--check', 'Check the file and print its servers, names and rules, without serving')
    .option('--stdio', 'Serve one client over standard input and output')
    .option('--sign-in <server>', 'Sign in at this server with the browser, for the gateway to use')
    .option('--approve <server>', 'Approve the command or address that the file now has for this server')
    .option('--port <number>', 'Serve over HTTP at this port; 0 takes a free one (default: as in the file, otherwise 7420)', {
      parse: portOf,
    })
    .option('--host <name>', 'Listen at this address (default: as in the file, otherwise 127.0.0.1)')
    .option('--unprotected', 'Accept every caller that reaches --host; not together with auth in the file')
    .option('--web', 'Serve the web console on 127.0.0.1:7425 (default: as in the file)')
    .option('--no-open', 'Do not open the browser for the console')
    .note('Servers and clients may speak different revisions of MCP: the gateway translates between them.')
    .examples([
      ['vivarium gateway gateway.yaml --check', 'Check the file before you use it'],
      ['vivarium gateway gateway.yaml --sign-in notes', 'Sign in once, for a server whose entry says auth: sign-in'],
      ['vivarium gateway gateway.yaml --port 7420', 'Serve clients over HTTP'],
      ['vivarium gateway gateway.yaml --stdio', 'Serve over stdio, as the only server in the config of a client'],
      ['vivarium gateway approvals gateway.yaml', 'See what waits for approval, from a second terminal'],
    ])
    .action<GatewayOptions>(call => run(call, io))
}

/** Checks the file, signs in, approves a launch, or serves until it is interrupted. */
async function run({ words: [file = ''], options }: VerbCall<GatewayOptions>, io: Io): Promise<number> {
  const { createGateway } = await import('../../gateway/index.ts')
  if (options.stdio === true && options.port !== undefined)
    throw new CliError('--stdio and --port cannot be used together', 'Remove one of them')
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
  const web = options.web === true || (config.frame.console ?? false) !== false ? await prepareConsole(options, io) : undefined
  const onFaults = web?.faults
  await using following = await followFile(config, { env: io.env, tell, ...(onFaults !== undefined && { onFaults }) })
  const given: Parameters<typeof createGateway>[0] = {
    config: file,
    onStderr: stderr,
    onNotice: ({ message, fix }) => tell(say`${message}\n  → ${fix}`, 'warning'),
    ...(io.interactive && options.stdio !== true && { onLaunchChanged: launchQuestions(io) }),
  }
  await using opened = await startWithSmallHeap(() => createGateway(web === undefined ? given : web.observe(given)))
  following.open(opened)
  const shown = await web?.open(opened, config, error => tell(`console: ${messageOf(error)}`, 'mistake'))
  try {
    if (options.stdio === true) await Promise.race([opened.stdio(), untilInterrupted(io.signal)])
    else await serve(opened, config, options, io)
  } finally {
    await shown?.close()
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
    `${first.why.fix}. Run vivarium gateway ${file} --check to see all mistakes`,
  )
}

/** Loads the console, which listens from the start of the gateway on. */
async function prepareConsole(options: GatewayOptions, io: Io) {
  const [{ observeGateway }, { openConsole }] = await Promise.all([
    import('../../console/index.ts'),
    import('../gateway/console.ts'),
  ])
  let observer: ReturnType<typeof observeGateway>['observer'] | undefined
  return {
    /** The options with listeners. */
    observe: (given: Parameters<typeof observeGateway>[0]) => {
      const observed = observeGateway(given)
      observer = observed.observer
      return observed.options
    },
    faults: (faults: GatewayConfig<unknown>['faults']): void =>
      observer?.setFaults(
        faults.map(({ file, line, why: { rule, message, fix } }) => ({ ...{ file, line, rule, message, fix } })),
      ),
    open: async (gateway: Gateway, config: GatewayConfig<TrustSettings>, failed: (error: unknown) => void) => {
      if (observer === undefined) throw new Error('The gateway is not observed')
      const opens = options.open !== false && options.stdio !== true && options.format === 'text'
      return openConsole({ gateway, observer, config, opens, io, failed })
    },
  }
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
    aside.note(`  Try: vivarium list ${url}`)
    aside.note('  Press Ctrl-C to end')
  }
  await untilInterrupted(io.signal)
}

/** How many are there now. Others may still come up. */
function servedOf(opened: Gateway): string {
  const all = opened.upstreams()
  const up = all.filter(({ status }) => status === 'up').length
  const rest = up === all.length ? '' : ` (${up} up so far)`
  return `Serving ${all.length} ${all.length === 1 ? 'server' : 'servers'}${rest}`
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
async function startWithSmallHeap(open: () => Promise<Gateway>): Promise<Gateway> {
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
const fileAbout = 'the config of the gateway'
/** The rules of `--format`, for words that declare it themselves. */
const formats = { choices: ['text', 'json'], fallback: 'text' } as const

/** `approvals` and `pins`: the same options, with another list. */
function answering(command: CommandLike, pins: boolean, io: Io): void {
  command
    .argument('<file>', fileAbout)
    .option('--approve <id>', `Approve it${pins ? '; all approves everything that is listed' : ''}`, { repeated: true })
    .option('--refuse <id>', 'Refuse it', { repeated: true })
    .option('--show <id>', 'Show it in full, however long; with --approve, before it is approved', { repeated: true })
    .option('--as <name>', 'Set who answers, for the audit log (default: your user name on this machine)')
    .option('--format <kind>', 'Print text for people or JSON for programs', formats)
    .examples([
      [`vivarium gateway ${pins ? 'pins' : 'approvals'} gateway.yaml`, 'List what waits; in a terminal, also answer it'],
      [`vivarium gateway ${pins ? 'pins' : 'approvals'} gateway.yaml --approve ID`, 'Approve one entry of the list'],
    ])
    .action<AnswerOptions>(async ({ words: [file = ''], options }: VerbCall<AnswerOptions>) => {
      const { approvals } = await import('../gateway/approvals.ts')
      return approvals(await configOf(file, io), pins, options, io)
    })
}

/** `vivarium gateway status`. */
function status(command: CommandLike, io: Io): void {
  command
    .argument('<file>', fileAbout)
    .option('--port <number>', 'Ask the gateway at this port (default: as in the file, otherwise 7420)', { parse: portOf })
    .option('--format <kind>', 'Print text for people or JSON for programs', formats)
    .examples([['vivarium gateway status gateway.yaml', 'Ask the running gateway']])
    .action<{ readonly port?: number; readonly format: 'text' | 'json' }>(async ({ words: [file = ''], options }) => {
      const { showStatus } = await import('../gateway/reports.ts')
      return showStatus(await configOf(file, io), options, io)
    })
}

/** `vivarium gateway console`. */
function consoleLinks(command: CommandLike, io: Io): void {
  command
    .argument('<file>', fileAbout)
    .option('--role <name>', 'viewer, operator or approver; may be repeated (default: all)', { repeated: true })
    .option('--as <name>', 'Who uses it, for the audit log (default: the user of this machine)')
    .option('--format <kind>', 'text for people, json for programs', formats)
    .action<LinkCommandOptions>(async ({ words: [file = ''], options }: VerbCall<LinkCommandOptions>) => {
      const { printLinks } = await import('../gateway/console.ts')
      return printLinks(await configOf(file, io), options, io)
    })
}

/** `vivarium gateway audit`. */
function auditing(command: CommandLike, io: Io): void {
  command
    .argument('<file>', fileAbout)
    .option('--since <time>', 'Print entries since then: 2h or 3d (ago), or a date (default: 1d)', { parse: timeOf })
    .option('--until <time>', 'Print entries before then', { parse: timeOf })
    .option('--client <name>', 'Print entries of this client')
    .option('--subject <id>', 'Print entries of this subject of a token')
    .option('--server <name>', 'Print entries about this server')
    .option('--tool <name>', 'Print entries about this tool, by its own name or the name that clients see')
    .option('--outcome <word>', 'Print entries with this outcome: success, failure, refused, replayed, held, approved')
    .option('--limit <number>', 'Print at most this many, the latest ones (default: 100)', { parse: countOf })
    .option('--verify', 'Recompute the hash chain, and fail if a line was changed')
    .option('--format <kind>', 'Print text for people or JSON for programs, one line per entry', formats)
    .examples([['vivarium gateway audit gateway.yaml --tool delete_file --since 2d', 'Who deleted that file yesterday?']])
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
  throw new TypeError(`"${clip(text)}" is not a whole number from 1 to 100000`)
}

/** Mistakes in rules do not matter here. */
async function configOf(file: string, io: Io): Promise<GatewayConfig<TrustSettings>> {
  const { readGatewayFile } = await import('../../gateway/index.ts')
  return readGatewayFile(file, { env: io.env }).catch(error => {
    throw new CliError(messageOf(error), 'Pass the path of a YAML or JSON file')
  })
}

/** A date, or how long ago. */
function timeOf(text: string): number {
  if (/^\d+(\.\d+)?(ms|s|m|h|d)$/.test(text)) return Date.now() - toMilliseconds(text as Duration)
  const time = Date.parse(text)
  if (Number.isNaN(time))
    throw new TypeError(`"${text.slice(0, 40)}" is not a time. Write 2h, 1d, 2026-07-28 or 2026-07-28T12:00:00Z`)
  return time
}
