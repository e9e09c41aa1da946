/** `vivarium gateway`: one endpoint in front of many servers, as a file says; with `--check` what that file comes to. */
import type { Gateway, GatewayConfig } from '../../gateway/index.ts'
import type { TrustSettings } from '../../gateway/trust/settings.ts'
import { CliError } from '../exit.ts'
import { startQuietly } from '../gateway/quiet-start.ts'
import { untilInterrupted } from '../interrupted.ts'
import type { Io } from '../io.ts'
import { portOf } from '../port.ts'
import { printerOf } from '../print.ts'
import type { Call, Verb } from '../program.ts'
import { safe } from '../terminal/paint.ts'

interface GatewayOptions {
  readonly check?: boolean
  readonly stdio?: boolean
  readonly port?: number
  readonly host?: string
  readonly unprotected?: boolean
  readonly format: 'text' | 'json'
}

export const gateway: Verb = {
  name: 'gateway',
  summary: 'One endpoint in front of many servers, by a config file',
  declare(command, io) {
    command
      .argument('<file>', 'YAML or JSON: include, servers, listen, store, auth, clients, rules, pins, audit')
      .option('--check', 'Say what the file comes to: servers, names, rules, mistakes. Serves nothing')
      .option('--stdio', 'Serve one client over standard input and output')
      .option('--port <number>', 'Over HTTP at this port; 0 takes any that is free (default: as the file says, else 7420)', {
        parse: portOf,
      })
      .option('--host <name>', 'The address to listen at (default: as the file says, else 127.0.0.1)')
      .option('--unprotected', 'Let everybody in who reaches --host')
      .note('Servers speak whatever revision of MCP they speak, and clients theirs: the gateway translates between them.')
      .examples([
        ['vivarium gateway gateway.yaml --check', 'before you use it'],
        ['vivarium gateway gateway.yaml --port 7420', 'for clients that speak HTTP'],
        ['vivarium gateway gateway.yaml --stdio', 'as the only server in the config of an editor'],
      ])
      .action<GatewayOptions>(call => run(call, io))
  },
}

async function run({ words: [file = ''], options }: Call<GatewayOptions>, io: Io): Promise<number> {
  const { createGateway, readGatewayFile } = await import('../../gateway/index.ts')
  const { optionsOf } = await import('../../gateway/config/load.ts')
  if (options.stdio === true && options.port !== undefined)
    throw new CliError(1, '--stdio and --port exclude each other', 'Leave one out')
  const config = await readGatewayFile(file, { env: io.env }).catch(error => {
    throw new CliError(1, error instanceof Error ? error.message : String(error), 'Give the path of a YAML or JSON file')
  })
  if (options.check === true) {
    const { checkGateway } = await import('../gateway/check.ts')
    return checkGateway(config, io, options.format)
  }
  refuse(config)
  const aside = printerOf(io).aside
  const note = (text: string): void => aside.line(aside.paint.dim(safe(text)))
  const opened = await startQuietly(
    () => createGateway({ ...optionsOf(config), onStderr: (server, line) => note(`${server}: ${line}`) }),
    gateway => gateway.ready(),
  )
  try {
    if (options.stdio === true) await opened.stdio()
    else await serve(opened, config, options, io)
  } finally {
    await opened.close()
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
    line(`${config.servers.size} servers are served at ${paint.name(url)}`)
    aside.line(aside.paint.dim(`  vivarium list ${url}`))
    aside.line(aside.paint.dim('  Ctrl-C ends it'))
  }
  await untilInterrupted(io.signal)
  await listening.close()
}
