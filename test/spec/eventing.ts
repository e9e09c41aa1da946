/** Bare peers that subscribe to events, by whatever their wire has. */
import { expect } from 'vitest'
import { eventsExtension, type WireEvent, type WireSubscribed } from '../../src/features/reliability/events/messages.ts'
import type { RevisionId } from '../../src/revisions/index.ts'
import type { Server } from '../../src/server/index.ts'
import { expectFits } from '../extension-schemas.ts'
import { type Frame, type PeerOptions, resultOf, speak, type Wire } from './wire.ts'

export const hearing = { extensions: { [eventsExtension]: {}, 'dev.vivarium/permissions': {} } }

export interface Subscriber {
  readonly wire: Wire
  readonly response: WireSubscribed
  /** What came of this subscription, in order. */
  events(): readonly WireEvent[]
  /** The same, as soon as there are so many. */
  heard(count: number): Promise<readonly WireEvent[]>
  /** Why it ended. */
  terminated(): readonly unknown[]
}

export async function listener(server: Server, revision: RevisionId, options: PeerOptions = {}): Promise<Wire> {
  return speak(server, revision, { capabilities: hearing, ...options })
}

/** Subscribes on a wire that is open. */
export async function subscribe(wire: Wire, revision: RevisionId, wish: Frame, meta?: Frame): Promise<Subscriber> {
  const extra = meta === undefined ? {} : { _meta: meta }
  const response = revision === '2026-07-28' ? await listen(wire, wish, extra) : await ask(wire, wish, extra)
  expectFits(wish, 'subscribe-notify.schema.json', 'SubscriptionRequest')
  expectFits(response, 'subscribe-notify.schema.json', 'SubscriptionResponse')
  const paramsOf = (method: string): Frame[] =>
    wire.heard
      .filter(frame => frame['method'] === method)
      .map(frame => frame['params'] as Frame)
      .filter(params => params['subscription_id'] === response.subscription_id)
  const events = (): readonly WireEvent[] => paramsOf('notifications/event') as unknown as WireEvent[]
  return {
    wire,
    response,
    events,
    heard: async count => {
      await expect.poll(() => events().length).toBeGreaterThanOrEqual(count)
      for (const event of events()) expectFits(event, 'subscribe-notify.schema.json', 'EventNotification')
      return events()
    },
    terminated: () => paramsOf('notifications/event/terminated').map(params => params['reason']),
  }
}

export async function subscriber(
  server: Server,
  revision: RevisionId,
  wish: Frame,
  options: PeerOptions = {},
): Promise<Subscriber> {
  return subscribe(await listener(server, revision, options), revision, wish)
}

async function ask(wire: Wire, wish: Frame, extra: Frame): Promise<WireSubscribed> {
  return resultOf(await wire.ask('event/subscribe', { ...wish, ...extra })) as unknown as WireSubscribed
}

async function listen(wire: Wire, wish: Frame, extra: Frame): Promise<WireSubscribed> {
  const id = wire.begin('subscriptions/listen', { notifications: { [eventsExtension]: [wish] }, ...extra })
  const { params, error } = await wire.next(
    frame => frame['method'] === 'notifications/subscriptions/acknowledged' || frame['id'] === id,
  )
  if (error !== undefined) throw new Error(JSON.stringify(error))
  const [response] = ((params as Frame)['notifications'] as Frame)[eventsExtension] as WireSubscribed[]
  return response as WireSubscribed
}
