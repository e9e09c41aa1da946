/** What a check of a gateway's file says, for programs: all that people read, in one value. */
import type { Command } from '../../client/target.ts'
import type { Why } from '../../core/why.ts'
import type { GatewayConfig, OfferedName, UpstreamStatus } from '../../gateway/index.ts'

/** What was found where the file is without mistakes. */
export interface Found<Name extends OfferedName> {
  readonly servers: readonly UpstreamStatus[]
  readonly names: readonly Name[]
  /** Names of rules that are about no tool there is; none where a server is down, whose tools nobody knows then. */
  readonly idle: readonly string[]
}

export function checkJson<Name extends OfferedName>(config: GatewayConfig<unknown>, found: Found<Name> | undefined): unknown {
  const { file, faults, servers } = config
  return {
    file,
    faults: faults.map(faultOf),
    ...(found !== undefined && {
      servers: found.servers.map(server => statusOf(server, targetText(servers.get(server.name)?.target))),
      names: found.names,
      idle: found.idle,
    }),
  }
}

function statusOf({ name, status, why, revision, tools, resources, prompts, left }: UpstreamStatus, target: string) {
  return {
    name,
    target,
    status,
    ...(revision !== undefined && { revision }),
    ...(why !== undefined && { why: { code: why.code, rule: why.rule, message: why.message, fix: remedyOf(why) } }),
    tools,
    resources,
    prompts,
    left: left.map(({ code, rule, message, fix }) => ({ code, rule, message, fix })),
  }
}

/** Nothing is tried again here. */
export function remedyOf({ code, fix }: Why): string {
  return code === 'SERVER_DOWN' ? 'Correct its entry, or start it' : fix
}

/** An address, or a command with its words. */
export function targetText(target: Command | string | undefined): string {
  return typeof target === 'string' ? target : [target?.command, ...(target?.args ?? [])].join(' ')
}

function faultOf({ file, line, server, why: { rule, message, fix } }: GatewayConfig<unknown>['faults'][number]) {
  return { file, line, ...(server !== undefined && { server }), rule, message, fix }
}
