/** News of a host while somebody looks: turns at once, servers and budgets once a second. */
import type { Clock } from '../../core/clock.ts'
import type { Turn, TurnPart } from '../../host/loop/turn.ts'
import type { ServerRow } from '../contract/servers.ts'
import type { Budget } from '../contract/traffic.ts'
import type { Feed } from '../feed.ts'
import type { AgentSource } from './agent.ts'
import { eventOf } from './inbox-routes.ts'
import type { ObservedHost } from './observer.ts'
import { entryOfNote } from './rows.ts'
import { aboutOf, callSpans, hookSpan, inferenceSpan, turnSpan } from './spans.ts'
import { partOf, turnRow } from './turns.ts'

const tickMs = 1_000

interface NewsParts {
  readonly agent: AgentSource
  readonly observer: ObservedHost | undefined
  readonly clock: Clock
  servers(): Promise<readonly ServerRow[]>
  budgets(): Promise<readonly Budget[]>
  failed(error: unknown): void
}

/** Publishes news until the signal is aborted. */
export function publishHost(parts: NewsParts, feed: Feed, signal: AbortSignal): void {
  const { agent, observer, failed } = parts
  const heads = new Map<string, string | undefined>()
  observer?.meter.recent()
  const stops = [
    agent.turns.follow({
      changed: turn => {
        publishTurn(agent, feed, turn)
        feed.publish('span', turnSpan(turn))
      },
      part: (turn, part) => publishPart(parts, feed, turn, part),
    }),
    observer?.lines.follow(line => feed.publish('log', line)),
    observer?.follow({
      noted: noted => feed.publish('audit', entryOfNote(noted)),
      fault: fault => feed.publish('fault', fault),
      inbox: (server, eventId) => void publishEvent(agent, feed, server, eventId).catch(failed),
      state: (server, set) => void publishState(agent, feed, heads, server, set).catch(failed),
    }),
  ]
  const endTicks = everySecond(parts, feed)
  signal.addEventListener('abort', () => {
    endTicks()
    for (const stop of stops) stop?.()
  })
}

function publishTurn({ turns }: AgentSource, feed: Feed, turn: Turn): void {
  const running = turns.of(turn)
  feed.publish('turn', turnRow(turn, true, running), turnRow(turn, false, running))
}

function publishPart({ agent, clock }: NewsParts, feed: Feed, turn: Turn, part: TurnPart): void {
  const running = agent.turns.of(turn)
  const about = aboutOf(turn)
  const at = clock.now()
  feed.publish('part', { ...about, at, part: partOf(part, true, running) }, { ...about, at, part: partOf(part, false, running) })
  const hook = part.type === 'hook' ? hookSpan(about, part.report, (running?.hooks ?? 1) - 1) : undefined
  if (hook !== undefined) feed.publish('span', hook)
  if (part.type === 'inference') feed.publish('span', inferenceSpan(about, part.inference))
  if (part.type !== 'call' && part.type !== 'result') return
  const outcome = part.type === 'result' ? part.outcome : undefined
  for (const span of callSpans(about, part.call, outcome, running?.began.get(part.call.n))) feed.publish('span', span)
}

async function publishEvent({ host }: AgentSource, feed: Feed, server: string, eventId: string): Promise<void> {
  const record = await host.inbox.get(server, eventId)
  if (record !== undefined) feed.publish('inbox', eventOf(record, true), eventOf(record, false))
}

/** The newest checkpoint, and the head where it is another one than before. */
async function publishState(
  { host }: AgentSource,
  feed: Feed,
  heads: Map<string, string | undefined>,
  server: string,
  featureSet: string,
): Promise<void> {
  const nodes = await host.state.tree(server, featureSet)
  const newest = nodes.at(-1)
  if (newest !== undefined) feed.publish('checkpoint', { server, featureSet, node: newest })
  const head = nodes.find(({ current }) => current)?.checkpoint
  const key = JSON.stringify([server, featureSet])
  if (heads.has(key) && heads.get(key) === head) return
  heads.set(key, head)
  feed.publish('head', { server, featureSet, checkpoint: head ?? null })
}

/** Servers, traffic and budgets that have changed; returns the way to stop. */
function everySecond({ observer, clock, servers, budgets, failed }: NewsParts, feed: Feed): () => void {
  const known = new Map<string, string>()
  const spent = new Map<string, string>()
  let ended = false
  const tick = async (silent: boolean): Promise<void> => {
    const rows = await servers()
    for (const row of rows) {
      const text = JSON.stringify(row)
      if (known.get(row.name) !== text && !silent) feed.publish('server', row)
      known.set(row.name, text)
    }
    for (const [name, text] of known) {
      if (rows.some(row => row.name === name)) continue
      known.delete(name)
      feed.publish('server', { ...(JSON.parse(text) as ServerRow), gone: true })
    }
    const traffic = observer?.meter.recent() ?? []
    if (traffic.length > 0) feed.publish('traffic', { at: clock.now(), rows: traffic })
    for (const budget of await budgets()) {
      const text = JSON.stringify(budget)
      if (spent.get(budget.name) !== text && !silent) feed.publish('spent', budget)
      spent.set(budget.name, text)
    }
  }
  let timer = clock.setTimeout(again, tickMs, true)
  function again(): void {
    void tick(false)
      .catch(failed)
      .finally(() => {
        if (!ended) timer = clock.setTimeout(again, tickMs, true)
      })
  }
  void tick(true).catch(failed)
  return () => {
    ended = true
    timer()
  }
}
