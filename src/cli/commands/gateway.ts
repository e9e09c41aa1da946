/** `vivarium gateway`: one endpoint in front of many servers, as a file says; with `--check` what that file comes to. */
import type { Gateway, GatewayConfig } from '../../gateway/index.ts'
import type { TrustSettings } from '../../gateway/trust/settings.ts'
import { CliError } from '../errors.ts'
import { declareOperating } from '../gateway/operating.ts'
import { startQuietly, tellingTo } from '../gateway/serve.ts'
import { type Io, untilInterrupted } from '../io.ts'
import { portOf } from '../port.ts'
import { printerOf } from '../print.ts'
import type { Verb, VerbCall } from '../program.ts'
import { say } from '../terminal/text.ts'

interface GatewayOptions {
  readonly check?: boolean
  readonly stdio?: boolean
  readonly signIn?: string
  readonly approve?: string
  readonly port?: number
  readonly host?: string
  readonly unprotected?: boolean
  readonly format: 'text' | 'json'
}

export const gateway: Verb = {
  name: 'gateway',
  summary: 'One endpoint in front of many servers, by a config file',
  declare(command, io) {
    declareOperating(command, io)
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
  },
}

async function run({ words: [file = ''], options }: VerbCall<GatewayOptions>, io: Io): Promise<number> {
  const { createGateway, readGatewayFile } = await import('../../gateway/index.ts')
  if (options.stdio === true && options.port !== undefined)
    throw new CliError(1, '--stdio and --port exclude each other', 'Leave one out')
  const read = await readGatewayFile(file, { env: io.env }).catch(error => {
    throw new CliError(1, error instanceof Error ? error.message : String(error), 'Give the path of a YAML or JSON file')
  })
  const serves = options.signIn === undefined && options.approve === undefined
  const { asServed } = await import('../gateway/config.ts')
  const config = serves ? asServed(read, options) : read
  if (options.check === true) {
    const { checkGateway } = await import('../gateway/check.ts')
    return checkGateway(config, io, options.format)
  }
  refuse(config)
  if (options.signIn !== undefined) {
    const { signIn } = await import('../gateway/launches.ts')
    return signIn(config, options.signIn, io)
  }
  if (options.approve !== undefined) {
    const { approveLaunch } = await import('../gateway/launches.ts')
    return approveLaunch(config, options.approve, io)
  }
  const { followFile } = await import('../gateway/follow.ts')
  const { launchQuestions } = await import('../gateway/launches.ts')
  const { tell, stderr } = tellingTo(io)
  await using following = await followFile(config, { env: io.env, tell })
  await using opened = await startQuietly(
    () =>
      createGateway({
        config: file,
        onStderr: stderr,
        onNotice: ({ message, fix }) => tell(say`${message}\n  → ${fix}`, 'warning'),
        ...(io.interactive && options.stdio !== true && { onLaunchChanged: launchQuestions(io) }),
      }),
    gateway => gateway.ready(),
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
    1,
    `${first.file}:${first.line}: ${first.why.message}${more}`,
    `${first.why.fix}; vivarium gateway ${file} --check shows all`,
  )
}

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
    aside.line(aside.paint.dim(`  vivarium list ${url}`))
    aside.line(aside.paint.dim('  Ctrl-C ends it'))
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
