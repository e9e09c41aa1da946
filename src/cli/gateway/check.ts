/** What the file of a gateway comes to: which servers are there, under which names they are seen, what rules say, what is wrong. */

import { optionsOf } from '../../gateway/config/load.ts'
import { createGateway, type Gateway, type GatewayConfig, type OfferedName, type UpstreamStatus } from '../../gateway/index.ts'
import type { TrustSettings } from '../../gateway/trust/settings.ts'
import { faultText } from '../../host/config/read.ts'
import type { Io } from '../io.ts'
import { type Printer, printerOf } from '../print.ts'
import { safe } from '../terminal/paint.ts'

type Config = GatewayConfig<TrustSettings>

/** 0: all is well. 1: something is wrong in the file. 4: a server cannot be reached. */
export async function checkGateway(config: Config, io: Io, format: 'text' | 'json'): Promise<number> {
  const { faults } = config
  const printer = printerOf(io)
  // With a mistake in it the file means nothing for certain: nobody is called by it.
  const found = faults.length > 0 ? undefined : await look(config)
  if (format === 'json') printer.json({ file: config.file, faults: faults.map(faultOf), ...found })
  else print(config, found, printer)
  if (faults.length > 0) return 1
  return found?.servers.some(({ status }) => status !== 'up') === true ? 4 : 0
}

interface Offered extends OfferedName {
  /** What becomes of a call without arguments, by which rule; of tools only. */
  readonly do?: string
  readonly rule?: string
}

interface Found {
  readonly servers: readonly UpstreamStatus[]
  readonly names: readonly Offered[]
}

async function look(config: Config): Promise<Found> {
  // What is looked at here is not to be remembered as seen.
  const { store, listen, ...options } = optionsOf(config)
  await using gateway = await createGateway({ ...options, log: 'silent' })
  await gateway.ready()
  return { servers: gateway.upstreams(), names: gateway.names().map(name => judged(gateway, name)) }
}

function judged(gateway: Gateway, name: OfferedName): Offered {
  if (name.kind !== 'tool') return name
  const { do: effect, rule } = gateway.explain({ upstream: name.upstream, tool: name.own })
  return { ...name, do: effect, rule }
}

function faultOf({ file, line, server, why: { rule, message, fix } }: Config['faults'][number]) {
  return { file, line, ...(server !== undefined && { server }), rule, message, fix }
}

function print({ faults, servers }: Config, found: Found | undefined, { line, paint }: Printer): void {
  for (const fault of faults) line(paint.bad(safe(faultText(fault))))
  if (found === undefined)
    return line(`${faults.length} ${faults.length === 1 ? 'mistake' : 'mistakes'}; nothing was connected to`)
  for (const { name, status, why, revision, tools, resources, prompts, left } of found.servers) {
    const target = servers.get(name)?.target
    const what = typeof target === 'string' ? target : [target?.command, ...(target?.args ?? [])].join(' ')
    line(`${paint.name(safe(name))}  ${safe(what)}`)
    if (status === 'up') line(`  ${revision}: ${tools} tools, ${resources} resources, ${prompts} prompts`)
    else line(`  ${paint.bad(status)}: ${safe(why === undefined ? '' : `${why.message}. ${why.fix}`)}`)
    for (const { message } of left) line(`  ${paint.warn(safe(message))}`)
    for (const each of found.names.filter(({ upstream }) => upstream === name)) line(`  ${nameLine(each, paint)}`)
  }
}

function nameLine({ kind, name, own, do: effect, rule }: Offered, paint: Printer['paint']): string {
  const as = name === own ? '' : ` (${own} there)`
  const judged = effect === undefined ? '' : `  ${effect}${rule === 'otherwise' ? '' : ` by ${rule}`}`
  return `${paint.dim(kind)} ${safe(name)}${safe(as)}${safe(judged)}`
}
