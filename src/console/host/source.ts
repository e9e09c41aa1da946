/** A host as a source of the console: what all consoles show, and the news of a host. */
import { type Clock, realClock } from '../../core/clock.ts'
import { why } from '../../core/suggestion.ts'
import type { Host } from '../../host/host.ts'
import type { AuditEntry, AuditQuery } from '../contract/audit.ts'
import type { List } from '../contract/problem.ts'
import type { ServerDetail } from '../contract/servers.ts'
import type { Screen } from '../contract/session.ts'
import type { ConsoleAction, ConsoleSource, PageWish } from '../sources/source.ts'
import type { AgentSource } from './agent.ts'
import { publishHost } from './news.ts'
import type { ObservedHost } from './observer.ts'
import { budgetOf, entryOfLine, faultOf, serverRow, whyOf } from './rows.ts'
import { RunningTurns } from './running-turns.ts'

const screens: readonly Screen[] = ['chat', 'inbox', 'approvals', 'state', 'explain', 'overview', 'audit', 'logs']
const mostItems = 2_000
const hourMs = 3_600_000

/** What a source of a host is made of. */
export interface HostSourceParts {
  readonly host: Host
  readonly observer: ObservedHost | undefined
  readonly name: string
  readonly facts: AgentSource['facts']
  readonly clock?: Clock
  /** Told what went wrong beside requests. */
  failed(error: unknown): void
}

/** Makes a source of a host. */
export function hostSource(parts: HostSourceParts): ConsoleSource & { readonly agent: AgentSource } {
  const { host, observer, name, facts, clock = realClock, failed } = parts
  const agent: AgentSource = { host, turns: observer?.turns ?? new RunningTurns(clock), facts }
  const budgets = async () => (await host.budgets()).map(budgetOf)
  const servers = () => Promise.all(host.servers.map(serverRow))
  return {
    kind: 'host',
    name,
    screens: observer === undefined ? screens.filter(screen => screen !== 'logs') : screens,
    servers,
    server: server => detailOf(host, observer, server),
    retry: server => host.retry(server),
    audit: (query, page) => auditOf(host, query, page),
    prove: (onProgress, signal) => host.verifyAudit({ onProgress, signal }),
    note: action => void host.note(noteOf(action)).catch(failed),
    budgets,
    clients: undefined,
    observed: observer && {
      log: (query, before, limit) => observer.lines.find(query, before, limit),
      faults: () => host.configFaults.map(faultOf),
      traffic: ({ by = 'server', since = clock.now() - hourMs, step }) => observer.meter.read({ by, since, step }),
    },
    agent,
    publish: (feed, signal) => publishHost({ agent, observer, clock, failed, budgets, servers }, feed, signal),
  }
}

async function detailOf(host: Host, observer: ObservedHost | undefined, name: string): Promise<ServerDetail | undefined> {
  const server = host.server(name)
  if (server === undefined) return undefined
  const tools = await server.tools().catch(() => [])
  return {
    ...(await serverRow(server)),
    items: tools.slice(0, mostItems).map(({ tool }) => ({ kind: 'tool', name: tool.name, own: tool.name })),
    leftOut: server.held().map(held => whyOf(held.why)),
    stderr: observer?.lines.stderrOf(name) ?? [],
  }
}

/** `event` is the kind of a note, and its server the owner of the line. */
async function auditOf(host: Host, query: AuditQuery, { after, limit }: PageWish): Promise<List<AuditEntry>> {
  const { event, server, ...filter } = query
  const { items, next } = await host.searchAudit({
    ...filter,
    ...(event !== undefined && { target: event }),
    ...(server !== undefined && { owner: server }),
    ...(after !== undefined && { before: Number(after) }),
    limit,
  })
  return { items: items.map(entryOfLine), ...(next !== undefined && { next: String(next) }) }
}

/** What somebody did at the console. */
function noteOf({ route, by, outcome, server = '', code, approval }: ConsoleAction): Parameters<Host['note']>[0] {
  const detail = approval === undefined ? route : `${route} ${approval}`
  const refused =
    code === undefined ? undefined : why(code, 'console', 'The console refused a request', 'See the rights of the session')
  return { server, kind: 'console', outcome, detail, by, ...(refused !== undefined && { why: refused }) }
}
