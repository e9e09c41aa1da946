/** The routes of the inbox: events of servers, and trying dead ones again. */
import type { InboxRecord } from '../../host/inbox/options.ts'
import type { InboxEvent } from '../contract/inbox.ts'
import { ConsoleFailure } from '../failure.ts'
import { paged, pageOf, positionOf } from '../query.ts'
import type { AgentSource } from './agent.ts'
import { whyOf } from './rows.ts'
import { type HostTable, nothing } from './table.ts'

type Names = Readonly<Record<string, string>>
type State = InboxEvent['state']

const mostEvent = 1_000_000

/** The routes of the inbox. */
export function inboxRoutes(agent: AgentSource): HostTable {
  const { host } = agent
  return {
    'GET /inbox': {
      ...nothing,
      role: 'viewer',
      query: { server: 'text', state: ['waiting', 'done', 'refused', 'dead'], ...paged },
      answer: async ({ query, whole }) => {
        const { after, limit } = pageOf({ after: query['after'], limit: query['limit'] ?? 100 })
        const skip = after === undefined ? 0 : positionOf(after)
        const servers = query['server'] === undefined ? host.servers.map(({ name }) => name) : [String(query['server'])]
        const state = query['state'] as State | undefined
        const found = await host.inbox.newest({ servers, skip, limit: limit + 1, ...(state !== undefined && { state }) })
        const items = found.items.slice(0, limit).map(record => eventOf(record, whole))
        return {
          items,
          ...(found.items.length > limit && { next: String(skip + limit) }),
          counts: found.counts,
          ...(found.cut && { cut: true as const }),
        }
      },
    },
    'GET /inbox/:server/:event': {
      ...nothing,
      role: 'viewer',
      answer: async ({ names, whole }) => {
        const record = await recordIn(agent, names)
        const turn = await turnOf(agent, record)
        const { event } = record
        const isShown = whole && event !== undefined && JSON.stringify(event).length <= mostEvent
        return { ...eventOf(record, whole), ...(turn !== undefined && { turn }), ...(isShown && { event }) }
      },
    },
    'POST /inbox/:server/:event/replay': {
      ...nothing,
      role: 'operator',
      writes: true,
      answer: async ({ names, whole }) => {
        const { server, eventId, state } = await recordIn(agent, names)
        if (state !== 'dead')
          throw new ConsoleFailure('NOT_DEAD', `The event is ${state}, so there is nothing to replay.`, 'Reload the inbox.')
        if (!(await host.inbox.replay(server, eventId)))
          throw new ConsoleFailure('NOT_DEAD', 'Somebody else has replayed the event.', 'Reload the inbox.')
        return eventOf(await recordIn(agent, names), whole)
      },
    },
  }
}

/** An event as the contract has it. */
export function eventOf(record: InboxRecord, whole: boolean): InboxEvent {
  const { server, eventId, featureSet, inferenceId, state, at, preview, attempts, why, notBefore } = record
  return {
    ...{ server, eventId, featureSet, inferenceId, state, at },
    ...(whole && preview !== '' && { preview }),
    attempts: attempts.map(({ by: _, ...attempt }) => attempt),
    ...(why !== undefined && { why: whyOf(why) }),
    ...(notBefore !== undefined && { notBefore }),
  }
}

async function recordIn({ host }: AgentSource, { server = '', event = '' }: Names): Promise<InboxRecord> {
  const found = await host.inbox.get(server, event)
  if (found !== undefined) return found
  throw new ConsoleFailure('NOT_FOUND', 'There is no such event.', 'Finished events are forgotten after some days.')
}

/** The turn of an event, by the audit log: it says to which conversation the event went. */
async function turnOf({ host }: AgentSource, { inferenceId }: InboxRecord) {
  const { notes } = await host.audit({ inferenceId, kind: 'turn' })
  const conversation = notes.find(each => each.conversation !== undefined)?.conversation
  if (conversation === undefined) return undefined
  const turns = await host.conversation(conversation).turns({ undone: true })
  const seq = turns.find(turn => turn.inferenceId === inferenceId)?.seq
  return seq === undefined ? undefined : { conversation, seq }
}
