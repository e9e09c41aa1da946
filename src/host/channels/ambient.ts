/**
 * What people say in a channel to nobody in particular: taken in without waking the model, and shown to it with the next message that is
 * meant for it. The newest are kept, in memory: they are what was going on, not something to be done.
 */
import type { PushEvent } from '../../features/live/push-events/messages.ts'

/** Messages of one channel, and their characters; channels of one server. */
const mostMessages = 20
const mostCharacters = 16_000
const mostChannels = 256
/** Messages of one server that are known when they come again: it may not have heard that they were taken. */
const mostKnown = 1_000

/** Messages of channels that woke nobody, kept for the next turn. */
export class AmbientMessages {
  readonly #servers = new Map<string, Map<string, PushEvent[]>>()
  readonly #known = new Map<string, Set<string>>()

  /** Whether a message is meant for nobody in particular. What a server does not tag is meant for whoever hears it. */
  static is({ channel, tags = [] }: PushEvent): boolean {
    return channel !== undefined && tags.includes('chat:ambient')
  }

  keep(server: string, event: PushEvent): void {
    const known = this.#known.get(server) ?? new Set<string>()
    this.#known.set(server, known)
    if (known.has(event.eventId)) return
    known.add(event.eventId)
    const [oldest] = known
    if (known.size > mostKnown && oldest !== undefined) known.delete(oldest)
    this.putBack(server, event)
  }

  /** What was taken, and not shown after all. */
  putBack(server: string, event: PushEvent): void {
    const channels = this.#servers.get(server) ?? new Map<string, PushEvent[]>()
    this.#servers.set(server, channels)
    const id = event.channel?.channelId ?? ''
    const before = channels.get(id) ?? []
    // The one that was written in last stands last.
    channels.delete(id)
    channels.set(id, before.some(({ eventId }) => eventId === event.eventId) ? before : newest([...before, event]))
    const [oldest] = channels.keys()
    if (channels.size > mostChannels && oldest !== undefined) channels.delete(oldest)
  }

  /** What was said in the channel of an event since this was last asked. */
  take(server: string, { channel }: PushEvent): readonly PushEvent[] {
    const channels = this.#servers.get(server)
    const found = channel === undefined ? undefined : channels?.get(channel.channelId)
    if (channel !== undefined) channels?.delete(channel.channelId)
    return found ?? []
  }
}

function newest(events: readonly PushEvent[]): PushEvent[] {
  let characters = 0
  const kept = events.slice(-mostMessages).toReversed()
  return kept
    .filter(event => {
      characters += JSON.stringify(event.content).length
      return characters <= mostCharacters
    })
    .toReversed()
}
