/**
 * Channels on the host's side (MCP Live 0.4 and later): the registry of channels that a server offers, the messages that come in
 * through them, and the stream that sends an answer out in pieces. Servers block until a registration is answered, so it is answered at
 * once.
 */
import { quoted, why } from '../../../core/suggestion.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip, echo } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { type Answerer, type LiveGate, unannounced } from '../answers/messages.ts'
import { declaredUses, readIncoming, type SetUse } from '../dialects/messages.ts'
import type { PushAnswer, PushEvent } from '../push-events/messages.ts'
import {
  channelsChanged,
  channelsChangedNotice,
  incomingMessages,
  incomingMessagesNotice,
  listChannels,
  registerChannels,
  registerChannelsNotice,
  type WireChannel,
} from './messages.ts'

/** Capabilities of channels beyond messages; a server gets these only if it names them. */
type ToldOfChannels = 'channels.streaming' | 'channels.typing' | 'channels.acknowledge'

/** Limits per server, because the server chooses how much it registers and sends. */
const mostChannels = 10_000
const mostMessages = 1_000
const longestId = 512
const longestChannel = 4_096

/** The channels that one server has registered, and the answers to its channel messages. */
export class Channels {
  /** Includes channels registered before any set with channels was enabled. */
  readonly #registered = new Map<string, WireChannel>()
  readonly #gate: LiveGate
  readonly #onPush: (event: PushEvent) => Promise<PushAnswer>
  readonly #now: () => number

  /** `onPush` hands an incoming message to the host as a push event. */
  constructor(gate: LiveGate, onPush: (event: PushEvent) => Promise<PushAnswer>, now: () => number) {
    this.#gate = gate
    this.#onPush = onPush
    this.#now = now
  }

  /** The registered channels, or none while no enabled set may have channels. */
  get known(): ReadonlyMap<string, WireChannel> {
    return this.#gate.admitted('channels').length > 0 ? this.#registered : new Map()
  }

  /** Throws unless some set is allowed this use; the request is then not sent. */
  require(method: string, use: 'channels' | 'channels.publish'): void {
    if (!this.#gate.announced.channels) throw unannounced(method, 'channels')
    if (this.#gate.admitted(use).length > 0) return
    throw new McpError('feature-set-disabled', `${this.#noTaker(use)}, so ${method} was not sent`, { data: { use } })
  }

  /**
   * Whether the server wants these notifications. An announced `true` may cover less than it seems, so an enabled set that may have
   * channels must name the capability too. `channels.streaming` is a use of its own, which the configuration can grant.
   */
  hears(path: ToldOfChannels): boolean {
    if (!this.#gate.isGranted(path)) return false
    if (path === 'channels.streaming') return this.#gate.admitted(path).length > 0
    return this.#gate.admitted('channels').some(name => this.#gate.announced.sets.get(name)?.uses.includes(path) === true)
  }

  /** The handlers for all channel messages that a server sends. */
  answerers(): readonly Answerer[] {
    const register = (params: Params): object => this.#add(params['channels'])
    const change = (params: Params): object => this.#change(params)
    const take = (params: Params): Promise<Params> => this.#incoming(params['messages'] as readonly Params[])
    const control = (method: Answerer['method'], answer: Answerer['answer']): Answerer => ({ method, waits: false, answer })
    return [
      control(registerChannels, register),
      control(registerChannelsNotice, register),
      control(channelsChanged, change),
      control(channelsChangedNotice, change),
      control(listChannels, () => ({ channels: [...this.known.values()] })),
      { method: incomingMessages, waits: true, answer: take },
      { method: incomingMessagesNotice, waits: true, answer: take },
    ]
  }

  #change({ added, updated, removed }: Params): object {
    for (const gone of Array.isArray(removed) ? removed : [])
      this.#registered.delete((isRecord(gone) ? gone['id'] : gone) as string)
    const changed = [added, updated].flatMap(some => (Array.isArray(some) ? some : []))
    return this.#add(changed)
  }

  /** Servers block on this answer, so it is given before the selection; the channels become visible once the selection allows it. */
  #add(channels: unknown): object {
    const { announced, heard, selected } = this.#gate
    if (heard && !announced.channels) throw unannounced(registerChannels.name, 'channels')
    const allowed = !selected || this.#gate.admitted('channels').length > 0
    const results = (channels as readonly WireChannel[]).map(channel => {
      const { id } = channel
      if (!allowed) return { id: clip(id, longestId), accepted: false, reason: this.#noTaker('channels') }
      if (id.length > longestId)
        return { id: clip(id), accepted: false, reason: `The id is longer than ${longestId} characters (the limit)` }
      const accepted = this.#registered.has(id) || this.#registered.size < mostChannels
      if (accepted) this.#registered.set(id, small(channel))
      return accepted
        ? { id, accepted }
        : { id, accepted, reason: `The server has already registered ${mostChannels} channels (the limit)` }
    })
    return { results }
  }

  async #incoming(messages: readonly Params[]): Promise<Params> {
    if (!this.#gate.announced.channels) throw unannounced(incomingMessages.name, 'channels')
    if (messages.length > mostMessages)
      throw new McpError('invalid-params', `params.messages has ${messages.length} entries. The limit is ${mostMessages}`)
    const results: Params[] = []
    // Sequential, to keep the order of the channel.
    for (const message of messages) results.push(await this.#take(message))
    return { results }
  }

  async #take(message: Params): Promise<Params> {
    const { messageId } = message
    const refused = (reason: string): Params => ({ messageId, accepted: false, reason })
    // Messages name no set, so they count for the first enabled set that declares `channels.incoming`.
    const [featureSet] = this.#gate.admitted('channels.incoming')
    if (featureSet === undefined) return refused(this.#untaken())
    const read = readIncoming(message, featureSet, this.#now())
    if (read === undefined) return refused('The message needs a channelId and a messageId')
    for (const what of read.dropped) {
      const said = `Dropped from the message ${quoted(echo(messageId))}: ${what}`
      this.#gate.diagnose(
        why('CONTENT_DROPPED', 'content', said, 'Ask the author of the server to send only content types of MCP'),
      )
    }
    const answer = await this.#onPush(read.event)
    if (answer.accepted) return { messageId, accepted: true }
    const { reason, retryAfterMs } = answer
    // Tells a server with an outbox when to send the message again.
    return retryAfterMs === undefined ? refused(reason) : { ...refused(reason), retryAfterMs }
  }

  /** If exactly one set is enabled, calls `admit` for it, so that the host is told which declaration is missing. */
  #untaken(): string {
    const [only, ...more] = [...this.#gate.announced.sets.keys()].filter(name => this.#gate.isEnabled(name))
    try {
      if (only !== undefined && more.length === 0) this.#gate.admit(only, 'channels.incoming')
    } catch (error) {
      if (!(error instanceof McpError)) throw error
    }
    return this.#noTaker('channels.incoming')
  }

  /** Explains why no set is allowed this use: none declares it, or the host has not enabled one that does. */
  #noTaker(use: SetUse): string {
    const declaring = [...this.#gate.announced.sets].filter(([, facts]) => declaredUses(facts).has(use))
    if (declaring.length === 0) return `No feature set of the server lists ${use} in its uses`
    const names = declaring.map(([name]) => quoted(name)).slice(0, 3)
    return `The host has enabled none of the feature sets that use ${use} (${names.join(', ')})`
  }
}

/** Keeps a channel as sent unless it is too large; then only id, type and label remain. */
function small(channel: WireChannel): WireChannel {
  if (JSON.stringify(channel).length <= longestChannel) return channel
  const { id, type, label } = channel
  return {
    id,
    ...(typeof type === 'string' ? { type: clip(type) } : {}),
    ...(typeof label === 'string' ? { label: clip(label, 200) } : {}),
  }
}

/** Streams one answer to a server that shows answers while they are written. */
export interface ChannelStream {
  /** Adds a piece of the answer. */
  push(delta: string): void
  /** Ends the stream with the published answer, or with the text so far if it broke off. Settles when the server has received it. */
  end(text: string): Promise<void>
}
