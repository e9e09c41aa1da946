/**
 * What turns leave in channels, and what channels leave for turns: `ChannelAnswers` posts answers into the channel of the question,
 * `AmbientMessages` keeps messages that wake nobody. An answer is stored in the commit of its turn, so that it is neither lost nor posted
 * for a turn that was not committed.
 */
import type { Clock } from '../../core/clock.ts'
import { type Why, why } from '../../core/suggestion.ts'
import type { PushEvent } from '../../features/live/push-events/messages.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Note } from '../../policy/audit/host-audit.ts'
import { type Op, put, remove, type Store } from '../../stores/store.ts'
import type { TurnRecord } from '../loop/conversation-log.ts'
import { hasPosted } from '../loop/host-tools.ts'
import type { HostServer } from '../servers/server.ts'

/** An answer that is still to be posted, as it is stored. */
interface Waiting extends NonNullable<PushEvent['channel']>, Pick<PushEvent, 'featureSet' | 'eventId'> {
  readonly server: string
  readonly inferenceId: string
  readonly conversation: string
  readonly text: string
  readonly at: number
}

interface ChannelAnswersParts {
  readonly store: Store
  readonly clock: Clock
  readonly serverOf: (name: string) => HostServer | undefined
  /** Why a rule forbids publishing; undefined where none does. The feature set itself was approved before. */
  readonly denied: (server: string, featureSet: string, payload: unknown) => Why | undefined
  readonly note: (note: Note) => void
  readonly failed: (error: unknown) => void
}

const prefix = 'channel-answer/'
/** Answers of one server that are read at once. */
const mostAtOnce = 100
/** After this time an answer is dropped instead of posted. */
const worthMs = 24 * 60 * 60_000
/** Longer answers are cut. */
const longestAnswer = 100_000

/** Sends what a turn answered back into the channel that it came from. */
export class ChannelAnswers {
  readonly #parts: ChannelAnswersParts
  /** Sends under way, by server. */
  readonly #sending = new Map<string, Promise<void>>()
  #closed = false

  constructor(parts: ChannelAnswersParts) {
    this.#parts = parts
  }

  /** Operations that store an answer for its channel; none where the model has posted its answer itself, or has none. */
  ops(server: string, event: PushEvent, conversation: string, text: string, turn: TurnRecord): readonly Op[] {
    const { channel, featureSet, eventId } = event
    if (channel === undefined || text.trim() === '' || hasPosted(turn, server, channel.channelId)) return []
    const { inferenceId } = turn
    const at = this.#parts.clock.now()
    const about = { server, featureSet, eventId, inferenceId, conversation, at }
    const waiting: Waiting = { ...about, ...channel, text: text.slice(0, longestAnswer) }
    return [put(`${prefixOf(server)}${encodeURIComponent(inferenceId)}`, JSON.stringify(waiting))]
  }

  /** Posts the stored answers of a server, one after the other to keep their order. */
  send(server: string): Promise<void> {
    const before = this.#closed ? Promise.resolve() : this.#sending.get(server)
    if (before !== undefined) return before
    const sending = this.#send(server)
      .catch(this.#parts.failed)
      .finally(() => this.#sending.delete(server))
    this.#sending.set(server, sending)
    return sending
  }

  /** Stored answers stay for the next start. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.#sending.values())
  }

  /** Posts until nothing is left, or the server is gone. */
  async #send(server: string): Promise<void> {
    const { store, serverOf } = this.#parts
    for (;;) {
      const page = await store.scan(prefixOf(server), { limit: mostAtOnce })
      const waiting = page
        .map(({ key, value }) => ({ key, one: JSON.parse(value) as Waiting }))
        .sort((a, b) => a.one.at - b.one.at)
      if (waiting.length === 0) return
      for (const { key, one } of waiting) {
        const { live } = serverOf(server) ?? {}
        if (live === undefined) return
        if (!(await this.#post(live, one))) return
        await store.commit([remove(key)])
      }
    }
  }

  /** False: try again when the server is connected. Refusals and old answers are noted and dropped. */
  async #post(live: NonNullable<HostServer['live']>, one: Waiting): Promise<boolean> {
    const { clock, note } = this.#parts
    const { server, featureSet, eventId, inferenceId, conversation, channelId, messageId, threadId, text } = one
    const began = clock.now()
    const about = { server, featureSet, eventId, inferenceId, conversation, kind: 'publish', detail: clip(channelId) } as const
    const dropped = (outcome: 'refused' | 'dropped', said: Why): true => {
      note({ ...about, outcome, why: said, ms: clock.now() - began })
      return true
    }
    if (clock.now() - one.at > worthMs) return dropped('dropped', tooOld(channelId))
    const denied = this.#parts.denied(server, featureSet, { channel: channelId, text })
    if (denied !== undefined) return dropped('refused', denied)
    const thread = threadId === undefined ? {} : { threadId }
    try {
      const context = { conversationId: conversation, inReplyTo: messageId, inferenceId, ...thread }
      await live.publish(channelId, [{ type: 'text', text }], context)
    } catch (error) {
      if (!(error instanceof McpError) || error.kind === 'timeout') return false
      return dropped('refused', refusedPublish(channelId, error))
    }
    note({ ...about, outcome: 'success', ms: clock.now() - began })
    return true
  }
}

/** The key prefix of a server's answers. */
function prefixOf(server: string): string {
  return `${prefix}${encodeURIComponent(server)}/`
}

/** Why the server refused an answer. */
function refusedPublish(channelId: string, error: McpError): Why {
  const message = `The answer was not published in ${clip(channelId)}: ${clip(error.message, 300)}`
  if (error.kind !== 'feature-set-disabled')
    return why('PUBLISH_REFUSED', 'channels.publish', message, 'Check the error of the server, and publish the answer again')
  const fix = 'Enable a feature set of the server that uses channels.publish'
  return why('PUBLISH_NOT_ALLOWED', 'channels.publish', message, fix)
}

/** Why an answer is too old. */
function tooOld(channelId: string): Why {
  const message = `The answer was not published in ${clip(channelId)}: its server was not connected for a day`
  return why('PUBLISH_TOO_LATE', 'channels.publish', message, 'Start the server, and send a new answer')
}

// Ambient messages: what people say in a channel to nobody in particular. They wake no turn and are shown to the model with the next
// message that is meant for it. Only the newest are kept, in memory, because they are context and not work.

/** Messages per channel. */
const mostMessages = 20
/** Characters per channel. */
const mostCharacters = 16_000
/** Channels per server. */
const mostChannels = 256
/** Event ids per server that are recognised when they are sent again. */
const mostKnown = 1_000

/** Messages of channels that woke no turn, kept for the next one. */
export class AmbientMessages {
  readonly #servers = new Map<string, Map<string, PushEvent[]>>()
  readonly #known = new Map<string, Set<string>>()

  /** Whether a message is tagged as ambient; an untagged message is meant for the agent. */
  static is({ channel, tags = [] }: PushEvent): boolean {
    return channel !== undefined && tags.includes('chat:ambient')
  }

  /** Keeps a message; one that was sent before is ignored. */
  keep(server: string, event: PushEvent): void {
    const known = this.#known.get(server) ?? new Set<string>()
    this.#known.set(server, known)
    if (known.has(event.eventId)) return
    known.add(event.eventId)
    const [oldest] = known
    if (known.size > mostKnown && oldest !== undefined) known.delete(oldest)
    this.putBack(server, event)
  }

  /** Returns a message that was taken but not shown. */
  putBack(server: string, event: PushEvent): void {
    const channels = this.#servers.get(server) ?? new Map<string, PushEvent[]>()
    this.#servers.set(server, channels)
    const id = event.channel?.channelId ?? ''
    const before = channels.get(id) ?? []
    // Re-inserted, so that the channel with the newest message comes last and is evicted last.
    channels.delete(id)
    channels.set(id, before.some(({ eventId }) => eventId === event.eventId) ? before : newest([...before, event]))
    const [oldest] = channels.keys()
    if (channels.size > mostChannels && oldest !== undefined) channels.delete(oldest)
  }

  /** The messages of an event's channel since the last call; they are removed. */
  take(server: string, { channel }: PushEvent): readonly PushEvent[] {
    const channels = this.#servers.get(server)
    const found = channel === undefined ? undefined : channels?.get(channel.channelId)
    if (channel !== undefined) channels?.delete(channel.channelId)
    return found ?? []
  }
}

/** The newest messages within the limits, in their order. */
function newest(events: readonly PushEvent[]): PushEvent[] {
  let characters = 0
  const stored = events.slice(-mostMessages).toReversed()
  return stored
    .filter(event => {
      characters += JSON.stringify(event.content).length
      return characters <= mostCharacters
    })
    .toReversed()
}
