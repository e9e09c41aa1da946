/** What a host knows of its servers, audit log, budgets and config, as the contract has it. */

import type { AuditLine } from '../../core/audit/line.ts'
import { toMilliseconds } from '../../core/clock.ts'
import type { Why as CoreWhy } from '../../core/suggestion.ts'
import type { ConfigFault } from '../../host/config/read.ts'
import type { HostServer } from '../../host/servers/server.ts'
import type { Noted } from '../../policy/audit/host-audit.ts'
import type { BudgetStatus } from '../../policy/budgets/budgets.ts'
import { revisionById } from '../../revisions/index.ts'
import type { AuditEntry } from '../contract/audit.ts'
import type { Fault } from '../contract/log.ts'
import type { ServerRow, Why } from '../contract/servers.ts'
import type { Budget } from '../contract/traffic.ts'

/** A reason with its remedy, and nothing else that it may hold. */
export function whyOf({ code, rule, message, fix }: CoreWhy): Why {
  return { code, rule, message, fix }
}

/** A mistake of the config. */
export function faultOf({ file, line, why: { rule, message, fix } }: ConfigFault): Fault {
  return { file, line, rule, message, fix }
}

/** A server in a list. What a host does not list before somebody asks is counted as none. */
export async function serverRow(server: HostServer): Promise<ServerRow> {
  const { name, status, why, client } = server
  const era = client === undefined ? undefined : revisionById(client.revision)?.era
  // A server that does not answer now must not hold the list of all.
  const tools = await server.tools().catch(() => [])
  return {
    ...{ name, status, tools: tools.length, resources: 0, prompts: 0, held: server.held().length, left: server.held().length },
    ...(why !== undefined && status !== 'up' && { why: whyOf(why) }),
    ...(client !== undefined && { revision: client.revision }),
    ...(era !== undefined && { era: era === 'session' ? ('stateful' as const) : ('stateless' as const) }),
  }
}

/** A line of the audit log. Its event is the kind of the note: `tool`, `push`, `turn`, … */
export function entryOfLine({ position, at, event, correlation, owner, target, outcome, more = {} }: AuditLine): AuditEntry {
  const isNote = event === 'noted'
  const { detail, tool: _, ...rest } = more
  return {
    ...{ position, at, event: isNote ? target : event, owner, target: isNote && detail !== undefined ? String(detail) : target },
    ...(correlation !== undefined && { correlation }),
    ...(outcome !== undefined && { outcome }),
    more: { ...(owner !== '' && { server: owner }), ...(isNote && target === 'tool' && { tool: detail }), ...rest },
  }
}

/** The same of a note that was just made. */
export function entryOfNote(noted: Noted): AuditEntry {
  const { at, server, kind, inferenceId, outcome, detail, why, rule, ...rest } = noted
  const { featureSet, eventId, conversation, cause, ms, by } = rest
  return {
    ...{ at, event: kind, owner: server, target: detail ?? kind, outcome },
    ...(inferenceId !== undefined && { correlation: inferenceId }),
    more: {
      ...(server !== '' && { server }),
      ...(kind === 'tool' && { tool: detail }),
      ...{ featureSet, eventId, conversation, cause, ms, by, rule },
      ...(why !== undefined && whyOf(why)),
    },
  }
}

/** A budget in its current window. */
export function budgetOf({ limit, server, featureSet, used, resetsAt }: BudgetStatus): Budget {
  const { name, counts, most, per } = limit
  const who = featureSet !== undefined && featureSet !== '' ? `${server}/${featureSet}` : (server ?? 'all')
  return { name: `${name} ${who}`, who, unit: counts, used, most, per: toMilliseconds(per, 'budgets.per'), resets: resetsAt }
}
