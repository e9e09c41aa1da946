/** A gateway as a source of the console: its upstreams, audit log, clients, budgets, and what was observed of it. */
import type { Clock } from '../../core/clock.ts'
import type { Why as CoreWhy } from '../../core/suggestion.ts'
import type { Gateway, UpstreamStatus } from '../../gateway/gateway.ts'
import { revisionById } from '../../revisions/index.ts'
import type { AuditEntry, AuditQuery } from '../contract/audit.ts'
import type { List } from '../contract/problem.ts'
import type { ServerDetail, ServerRow, Why } from '../contract/servers.ts'
import type { Screen } from '../contract/session.ts'
import type { Budget, Client } from '../contract/traffic.ts'
import type { Feed } from '../feed.ts'
import type { ObservedGateway } from '../observer.ts'
import type { ConsoleSource, PageWish } from './source.ts'

const screens: readonly Screen[] = ['overview', 'approvals', 'audit', 'clients', 'logs']
const mostItems = 2_000
const tickMs = 1_000
const hourMs = 3_600_000

interface GatewaySourceParts {
  readonly gateway: Gateway
  readonly observer: ObservedGateway | undefined
  readonly clock: Clock
  /** Told what went wrong beside requests. */
  failed(error: unknown): void
}

/** Makes a source of a gateway. */
export function gatewaySource(parts: GatewaySourceParts): ConsoleSource {
  const { gateway, observer, clock } = parts
  const budgets = async (): Promise<readonly Budget[]> =>
    (await gateway.budgets()).map(({ client, perMs, resetsAt, ...rest }) => ({
      ...rest,
      who: client,
      per: perMs,
      resets: resetsAt,
    }))
  return {
    kind: 'gateway',
    name: gateway.server.engine.info.name,
    screens: observer === undefined ? screens.filter(screen => screen !== 'logs') : screens,
    servers: () => gateway.upstreams().map(rowOf),
    server: name => detailOf(gateway, observer, name),
    retry: name => gateway.retry(name),
    audit: {
      find: (query, page) => auditOf(gateway, query, page),
      prove: (onProgress, signal) => gateway.audit.verify({ onProgress, signal }),
    },
    note: ({ route, by, outcome, server, code, approval }) =>
      gateway.audit.note({
        method: `console ${route}`,
        ...{ by, outcome },
        ...(server !== undefined && { upstream: server }),
        ...(code !== undefined && { code }),
        ...(approval !== undefined && { approval }),
      }),
    figures: { budgets, clients: async () => clientsOf(gateway, await budgets()) },
    observed: observer && {
      log: (query, before, limit) => observer.log.find(query, before, limit),
      faults: () => observer.faults,
      traffic: ({ by = 'server', since = clock.now() - hourMs, step }) => observer.meter.read({ by, since, step }),
    },
    publish: (feed, signal) => publish(parts, budgets, feed, signal),
  }
}

function rowOf({ name, status, why, revision, carrier, tools, resources, prompts, held, left }: UpstreamStatus): ServerRow {
  const known = revision === undefined ? undefined : revisionById(revision)
  return {
    ...{ name, status, tools, resources, prompts, held, left: left.length },
    ...(why !== undefined && { why: whyOf(why) }),
    ...(revision !== undefined && { revision }),
    ...(known !== undefined && { era: known.era === 'session' ? ('stateful' as const) : ('stateless' as const) }),
    ...(carrier !== undefined && { carrier }),
  }
}

function whyOf({ code, rule, message, fix }: CoreWhy): Why {
  return { code, rule, message, fix }
}

function detailOf(gateway: Gateway, observer: ObservedGateway | undefined, name: string): ServerDetail | undefined {
  const status = gateway.upstreams().find(each => each.name === name)
  if (status === undefined) return undefined
  const items = gateway.names().filter(({ upstream }) => upstream === name)
  return {
    ...rowOf(status),
    items: items.slice(0, mostItems).map(({ kind, name: shown, own }) => ({ kind, name: shown, own })),
    leftOut: status.left.map(whyOf),
    stderr: observer?.log.stderrOf(name) ?? [],
  }
}

async function auditOf(gateway: Gateway, query: AuditQuery, { after, limit }: PageWish): Promise<List<AuditEntry>> {
  const before = after === undefined ? {} : { before: Number(after) }
  const { items, next } = await gateway.audit.search({ ...query, ...before, limit })
  return {
    items: items.map(({ position, at, event, correlation, owner, target, outcome, more }) => ({
      ...{ position, at, event, owner, target },
      ...(correlation !== undefined && { correlation }),
      ...(outcome !== undefined && { outcome }),
      ...(more !== undefined && { more }),
    })),
    ...(next !== undefined && { next: String(next) }),
  }
}

function clientsOf(gateway: Gateway, budgets: readonly Budget[]): readonly Client[] {
  return gateway.clients().map(({ upstreams, ...rest }) => ({
    ...rest,
    servers: upstreams,
    budgets: budgets.filter(({ who }) => who === rest.name),
  }))
}

/** News: of the observer at once, and once a second what has changed otherwise. */
function publish(
  { gateway, observer, clock, failed }: GatewaySourceParts,
  budgets: () => Promise<readonly Budget[]>,
  feed: Feed,
  signal: AbortSignal,
): void {
  const servers = new Map(gateway.upstreams().map(status => [status.name, JSON.stringify(rowOf(status))]))
  const spent = new Map<string, string>()
  observer?.meter.recent()
  const stops = [
    observer?.follow({ audit: entry => feed.publish('audit', entry), fault: fault => feed.publish('fault', fault) }),
    observer?.log.follow(line => feed.publish('log', line)),
  ]
  const lookAtBudgets = async (silent: boolean): Promise<void> => {
    for (const budget of await budgets()) {
      const text = JSON.stringify(budget)
      if (spent.get(budget.name) !== text && !silent) feed.publish('spent', budget)
      spent.set(budget.name, text)
    }
  }
  const tick = async (): Promise<void> => {
    publishServers(gateway, servers, feed)
    const rows = observer?.meter.recent() ?? []
    if (rows.length > 0) feed.publish('traffic', { at: clock.now(), rows })
    await lookAtBudgets(false)
  }
  let timer = clock.setTimeout(again, tickMs, true)
  function again(): void {
    void tick()
      .catch(failed)
      .finally(() => {
        if (!signal.aborted) timer = clock.setTimeout(again, tickMs, true)
      })
  }
  void lookAtBudgets(true).catch(failed)
  signal.addEventListener('abort', () => {
    timer()
    for (const stop of stops) stop?.()
  })
}

/** Rows that have changed since the last look, and those that are gone. */
function publishServers(gateway: Gateway, known: Map<string, string>, feed: Feed): void {
  const rows = gateway.upstreams().map(rowOf)
  for (const row of rows) {
    const text = JSON.stringify(row)
    if (known.get(row.name) !== text) feed.publish('server', row)
    known.set(row.name, text)
  }
  for (const [name, text] of known) {
    if (rows.some(row => row.name === name)) continue
    known.delete(name)
    feed.publish('server', { ...(JSON.parse(text) as ServerRow), gone: true })
  }
}
