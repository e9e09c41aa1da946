/** What the file of a gateway comes to: which servers are there, under which names they are seen, what rules say, what is wrong. */
import type { Command } from '../../client/target.ts'
import type { Why } from '../../core/suggestion.ts'
import { optionsOf } from '../../gateway/config/load.ts'
import { openGateway } from '../../gateway/create.ts'
import type { Gateway, GatewayConfig, OfferedName, UpstreamStatus } from '../../gateway/index.ts'
import type { TrustSettings } from '../../gateway/trust/settings.ts'
import { credentialCodes } from '../../gateway/upstreams/auth.ts'
import { faultText } from '../../host/config/read.ts'
import { given } from '../../jsonrpc/message.ts'
import { oldRulesText, readTargetRule, type TargetRule } from '../../policy/rules/call-policy.ts'
import type { Io } from '../io.ts'
import { type Printer, printerOf } from '../print.ts'
import { say, type TerminalText } from '../terminal/text.ts'
import { heldLaunches } from './config.ts'

/** The file of a gateway. */
type Config = GatewayConfig<TrustSettings>

/** 0: all is well. 1: something is wrong in the file. 3: nothing but a sign-in is missing. 4: a server cannot be reached. */
export async function checkGateway(config: Config, io: Io, format: 'text' | 'json'): Promise<number> {
  const { faults } = config
  const printer = printerOf(io)
  // With a mistake in it the file means nothing for certain: nobody is called by it.
  const found = faults.length > 0 ? undefined : await look(config)
  if (format === 'json') printer.json(checkJson(config, found))
  else print(config, found, printer)
  if (faults.length > 0) return 1
  const down = found?.servers.filter(({ status }) => status !== 'up') ?? []
  if (down.length === 0) return 0
  return down.every(({ why }) => credentialCodes.has(why?.code ?? '')) ? 3 : 4
}

/** A name that clients see, and what rules say of it. */
interface CheckedName extends OfferedName {
  /** What becomes of a call without arguments, by which rule; of tools only. */
  readonly do?: string
  readonly rule?: string
  /** What other rules say of some calls only: by their arguments, by the client, at some times. */
  readonly sometimes?: readonly { readonly do: string; readonly rule: string }[]
  /** False: nobody finds it in lists. */
  readonly listed?: false
}

/** Connects to the servers of the file and asks what they offer. */
async function look(config: Config): Promise<CheckReport> {
  // What is looked at here is not to be remembered as seen.
  const { store, listen, ...options } = optionsOf(config)
  // Nor is it to be started in a way that nobody has approved.
  const held = await heldLaunches(config)
  const safeServers = Object.entries(options.servers ?? {}).filter(([name]) => !held.has(name))
  await using gateway = await openGateway({
    ...options,
    servers: Object.fromEntries(safeServers),
    config: config.file,
    log: 'silent',
  })
  await gateway.ready()
  // While others are waited for, one that has failed may be tried once more: what counts here is that it has failed.
  const tried = gateway.upstreams().map((server): UpstreamStatus => {
    return server.status === 'connecting' && server.why !== undefined ? { ...server, status: 'down' } : server
  })
  // Servers that are not started, because their command or address is not approved.
  const idleParts = { status: 'down', tools: 0, resources: 0, prompts: 0, held: 0, left: [] } as const
  const servers = [...tried, ...[...held.values()].map(({ upstream, why }) => ({ name: upstream, why, ...idleParts }))]
  const rules = (options.rules ?? []).map(readTargetRule)
  const names = gateway.names().map(name => judged(gateway, rules, name))
  const idle = servers.every(({ status }) => status === 'up') ? idleRules(rules, names) : []
  return { servers, names, idle }
}

/** The names of rules that are about nothing that is offered. */
function idleRules(rules: readonly TargetRule[], names: readonly CheckedName[]): readonly string[] {
  const isIdle = ({ isAbout }: TargetRule): boolean =>
    !names.some(({ kind, upstream, own }) => isAbout(kind === 'template' ? 'resource' : kind, upstream, own))
  return rules.filter(isIdle).map(({ rule }) => rule.name)
}

/** A number with its noun. */
const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

/** What becomes of a call of the tool. */
function judged(gateway: Gateway, rules: readonly TargetRule[], name: OfferedName): CheckedName {
  if (name.kind !== 'tool') return name
  const { upstream, own } = name
  const { do: effect, rule, listed } = gateway.explain({ upstream, tool: own })
  const sometimes = rules
    .filter(each => each.decides && dependsOnCall(each) && each.effect !== effect && each.isAbout('tool', upstream, own))
    .map(each => ({ do: each.effect, rule: each.rule.name }))
  return { ...name, do: effect, rule, ...(sometimes.length > 0 && { sometimes }), ...(listed === false && { listed }) }
}

/** Whether a rule is about some calls of a tool and not about others. */
function dependsOnCall({ fixed, conditions }: TargetRule): boolean {
  return !fixed || conditions.client !== undefined || conditions.principal !== undefined
}

/** What the file comes to, for people. */
function print({ faults, servers, trust }: Config, found: CheckReport | undefined, { line, paint }: Printer): void {
  for (const fault of faults) line(paint.bad(faultText(fault)))
  if (found === undefined) return line(`${counted(faults.length, 'mistake')}; no server was contacted`)
  for (const { name, status, why, revision, tools, resources, prompts, left } of found.servers) {
    line(say`${paint.name(name)}  ${targetText(servers.get(name)?.target)}`)
    if (status === 'up')
      line(`  ${revision}: ${counted(tools, 'tool')}, ${counted(resources, 'resource')}, ${counted(prompts, 'prompt')}`)
    else line(say`  ${paint.bad(status)}: ${why === undefined ? '' : `${why.message}. ${remedyOf(why)}`}`)
    for (const { message } of left) line(say`  ${paint.warn(message)}`)
    for (const each of found.names.filter(({ upstream }) => upstream === name)) line(say`  ${nameLine(each, paint)}`)
  }
  const old = oldRulesText(trust.rules ?? [])
  if (old !== undefined) line(paint.warn(old))
  for (const rule of found.idle)
    line(paint.warn(`The rule ${rule} matches nothing that these servers offer. Correct its tool, resource, prompt or server`))
}

/** A name, what it is called at its server, and what a rule says of it. */
function nameLine(
  { kind, name, own, do: effect, rule, sometimes = [], listed }: CheckedName,
  paint: Printer['paint'],
): TerminalText {
  const as = name === own ? '' : ` (${own} there)`
  const judged =
    effect === undefined ? '' : `  ${effect}${rule === 'otherwise' ? '' : ` by ${rule}`}${listed === false ? ', not listed' : ''}`
  const some = sometimes.map(each => `; some calls: ${each.do} by ${each.rule}`).join('')
  return say`${paint.dim(kind)} ${name}${as}${judged}${some}`
}

/** What was found where the file is without mistakes. */
interface CheckReport {
  readonly servers: readonly UpstreamStatus[]
  /** What clients see, with the rule for each tool. */
  readonly names: readonly CheckedName[]
  /** Names of rules that are about no tool there is; none where a server is down, whose tools nobody knows then. */
  readonly idle: readonly string[]
}

/** What the file comes to, for programs. */
function checkJson({ file, faults, servers }: Config, found: CheckReport | undefined): unknown {
  return {
    file,
    faults: faults.map(({ file: at, line, server, why: { rule, message, fix } }) => ({
      file: at,
      line,
      ...given({ server }),
      rule,
      message,
      fix,
    })),
    ...(found && { ...found, servers: found.servers.map(each => statusOf(each, targetText(servers.get(each.name)?.target))) }),
  }
}

/** A server, for programs. */
function statusOf({ name, status, why, revision, tools, resources, prompts, left }: UpstreamStatus, target: string) {
  return {
    name,
    target,
    status,
    ...given({ revision }),
    ...(why !== undefined && { why: { code: why.code, rule: why.rule, message: why.message, fix: remedyOf(why) } }),
    tools,
    resources,
    prompts,
    left: left.map(({ code, rule, message, fix }) => ({ code, rule, message, fix })),
  }
}

/** Nothing is tried again here. */
function remedyOf({ code, fix }: Why): string {
  return code === 'SERVER_DOWN' ? 'Correct its entry, or start the server' : fix
}

/** An address, or a command with its words. */
function targetText(target: Command | string | undefined): string {
  return typeof target === 'string' ? target : [target?.command, ...(target?.args ?? [])].join(' ')
}
