/** What the file of a gateway comes to: which servers are there, under which names they are seen, what rules say, what is wrong. */

import { optionsOf } from '../../gateway/config/load.ts'
import { createGateway, type Gateway, type GatewayConfig, type OfferedName, type UpstreamStatus } from '../../gateway/index.ts'
import { readRule } from '../../gateway/trust/rules.ts'
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
  /** Names of rules that are about no tool there is; none where a server is down, whose tools nobody knows then. */
  readonly idle: readonly string[]
}

async function look(config: Config): Promise<Found> {
  // What is looked at here is not to be remembered as seen.
  const { store, listen, ...options } = optionsOf(config)
  await using gateway = await createGateway({ ...options, log: 'silent' })
  await gateway.ready()
  const servers = gateway.upstreams()
  const names = gateway.names().map(name => judged(gateway, name))
  const idle = servers.every(({ status }) => status === 'up') ? idleRules(options.rules ?? [], names) : []
  return { servers, names, idle }
}

function idleRules(rules: NonNullable<TrustSettings['rules']>, names: readonly Offered[]): readonly string[] {
  const tools = names.filter(({ kind }) => kind === 'tool')
  const isIdle = (rule: (typeof rules)[number]): boolean => {
    const { aboutTool } = readRule(rule)
    return !tools.some(({ upstream, own }) => aboutTool(upstream, own))
  }
  return rules.filter(isIdle).map(({ name }) => name)
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

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
  if (found === undefined) return line(`${counted(faults.length, 'mistake')}; nothing was connected to`)
  for (const { name, status, why, revision, tools, resources, prompts, left } of found.servers) {
    const target = servers.get(name)?.target
    const what = typeof target === 'string' ? target : [target?.command, ...(target?.args ?? [])].join(' ')
    line(`${paint.name(safe(name))}  ${safe(what)}`)
    if (status === 'up')
      line(`  ${revision}: ${counted(tools, 'tool')}, ${counted(resources, 'resource')}, ${counted(prompts, 'prompt')}`)
    else line(`  ${paint.bad(status)}: ${safe(why === undefined ? '' : `${why.message}. Correct its entry, or start it`)}`)
    for (const { message } of left) line(`  ${paint.warn(safe(message))}`)
    for (const each of found.names.filter(({ upstream }) => upstream === name)) line(`  ${nameLine(each, paint)}`)
  }
  for (const rule of found.idle)
    line(paint.warn(safe(`The rule ${rule} is about no tool of these servers. Correct its tool or upstream`)))
}

function nameLine({ kind, name, own, do: effect, rule }: Offered, paint: Printer['paint']): string {
  const as = name === own ? '' : ` (${own} there)`
  const judged = effect === undefined ? '' : `  ${effect}${rule === 'otherwise' ? '' : ` by ${rule}`}`
  return `${paint.dim(kind)} ${safe(name)}${safe(as)}${safe(judged)}`
}
