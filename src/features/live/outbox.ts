/** The outbox of a server: opened with the first set that pushes or has a channel, and shown to plain hosts as a resource. */
import { toMilliseconds } from '../../core/clock.ts'
import { channelEventId } from './channels/messages.ts'
import type { ChannelMessage, ChannelSent } from './channels/server.ts'
import { EventStore } from './push-events/event-store.ts'
import { Outbox, type OutboxOptions } from './push-events/outbox.ts'
import { type OutgoingPush, outgoing, type Pushed, type PushInput } from './push-events/server.ts'
import type { LiveParts } from './server.ts'

const pendingUri = 'live://events/pending'

/** How long a host may take to accept an event, and how many of those that wait are shown. */
const answerMs = 30_000
const shown = 100

interface LiveOutbox {
  /** Takes up what was left from before. */
  open(): void
  push(featureSet: string, event: PushInput): Promise<Pushed>
  /** The same of a message that somebody wrote in a channel. */
  incoming(featureSet: string, channelId: string, message: ChannelMessage): Promise<ChannelSent>
  kick(): void
  close(): Promise<void>
}

export function liveOutbox(
  { options = {}, store, clock, trace, resource, updated }: LiveParts,
  { hosts, offered, isKnown }: Pick<OutboxOptions, 'hosts' | 'offered' | 'isKnown'>,
): LiveOutbox {
  const { outbox: most = 10_000, keep = '7d' } = options
  const keepMs = toMilliseconds(keep, 'live.keep')
  let opening: Promise<Outbox> | undefined
  let offering = false
  const open = (): Promise<Outbox> => {
    opening ??= (async () => {
      const eventStore = new EventStore({ store: await store(), clock, most })
      const changed = (): void => updated(pendingUri)
      const box = new Outbox({ eventStore, clock, trace, hosts, offered, isKnown, keepMs, timeoutMs: answerMs, changed })
      await box.open()
      return box
    })().catch(error => {
      opening = undefined
      throw error
    })
    return opening
  }
  const offer = (): void => {
    if (offering) return
    offering = true
    const facts = {
      name: 'pending-events',
      title: 'Pending events',
      description: 'What has happened and no host has taken yet, oldest first',
      mimeType: 'application/json',
    }
    resource(pendingUri, facts, async (_, { principal }) => {
      const mine = (await open()).pending.filter(({ to }) => to === undefined || to === principal?.id)
      return JSON.stringify({ events: mine.slice(0, shown).map(told), more: Math.max(0, mine.length - shown) })
    })
  }
  return {
    open: () => {
      offer()
      void open().catch(error => trace('outbox-not-opened', error))
    },
    push: async (featureSet, event) => (await open()).push(outgoing(featureSet, event, clock.now())),
    incoming: async (featureSet, channelId, { content, messageId = crypto.randomUUID(), threadId, author, ...rest }) => {
      if (typeof messageId !== 'string' || messageId === '')
        throw new TypeError('incoming: messageId must be a string that is not empty')
      const channel = { channelId, messageId, ...(threadId !== undefined && { threadId }), ...(author && { author }) }
      const event = { ...rest, content, channel, eventId: channelEventId(channelId, messageId) }
      const { timestamp, answered } = await (await open()).push(outgoing(featureSet, event, clock.now()))
      const verdict = answered.then(answer =>
        answer.accepted ? { messageId, accepted: true } : { messageId, accepted: false, reason: answer.reason },
      )
      // Most authors never look.
      verdict.catch(() => undefined)
      return { messageId, timestamp, answered: verdict }
    },
    kick: () => void opening?.then(box => box.kick()).catch(() => undefined),
    close: async () => {
      const box = await opening?.catch(() => undefined)
      await box?.close()
    },
  }
}

function told({ to, ...event }: OutgoingPush): Omit<OutgoingPush, 'to'> {
  return event
}
