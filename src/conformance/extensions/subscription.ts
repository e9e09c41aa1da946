/** Subscribing to events as the wire has it, and what comes of that. */
import { setTimeout as wait } from 'node:timers/promises'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Frame, Json } from '../scenario.ts'
import { extensionId } from '../tools.ts'
import { listOf } from './scenario-of.ts'
import type { Talk } from './talk.ts'

export interface Subscription {
  readonly response: Json
  readonly id: string
  /** What came of it, in order. */
  events(): readonly Json[]
  frames(): readonly Frame[]
  ended(): readonly Json[]
  /** As soon as there are so many. */
  heard(count: number): Promise<readonly Json[]>
}

/** By the wire's own way: a request, or a member of a listen. */
export async function subscribe(talk: Talk, wish: Json, saying: Json = {}): Promise<Subscription> {
  const { peer } = talk
  const response =
    peer.revision === '2026-07-28' ? await listen(talk, wish, saying) : (await talk.ask('event/subscribe', wish, saying)).result
  const id = String(response['subscription_id'])
  const mine = (method: string): readonly Frame[] =>
    peer.heard(
      message => message['method'] === method && isRecord(message['params']) && message['params']['subscription_id'] === id,
    )
  const params = (method: string): readonly Json[] => mine(method).map(({ value }) => (value as { params: Json }).params)
  const events = (): readonly Json[] => params('notifications/event')
  return {
    response,
    id,
    events,
    frames: () => mine('notifications/event'),
    ended: () => params('notifications/event/terminated'),
    heard: async count => {
      const until = Date.now() + 5_000
      while (events().length < count && Date.now() < until) await wait(20)
      return events()
    },
  }
}

async function listen({ peer }: Talk, wish: Json, saying: Json): Promise<Json> {
  const key = extensionId('events')
  const meta = Object.fromEntries(Object.entries(saying).map(([name, value]) => [extensionId(name), value]))
  const { id } = peer.begin('subscriptions/listen', { notifications: { [key]: [wish] } }, { meta, ms: 30_000 })
  const frame = await peer.next(
    message =>
      message['method'] === 'notifications/subscriptions/acknowledged' ||
      (message['id'] === id && message['error'] !== undefined),
  )
  const params = isRecord(frame.value) && isRecord(frame.value['params']) ? frame.value['params'] : {}
  const kinds = isRecord(params['notifications']) ? params['notifications'] : {}
  return listOf(kinds[key])[0] ?? {}
}
