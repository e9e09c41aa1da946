/**
 * A small inbox for channels of MCP Live 0.4 and later: chat servers deliver there, not by pushes. They wait for the answer to a
 * registration before they do anything else, so it is given at once.
 */
import { quoted, why } from '../../../core/suggestion.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip, echo } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { type Answerer, type LiveGate, unannounced } from '../answers/messages.ts'
import { declaredUses, readIncoming, type SetUse } from '../dialects/messages.ts'
import type { PushAnswer, PushEvent } from '../push-events/messages.ts'
import {
  type ChannelVerdicts,
  channelsChanged,
  channelsChangedNotice,
  incomingMessages,
  incomingMessagesNotice,
  listChannels,
  registerChannels,
  registerChannelsNotice,
  type WireChannel,
} from './messages.ts'

interface ChannelPort extends LiveGate {
  readonly now: () => number
  onPush(event: PushEvent): Promise<PushAnswer>
  /** The server has been told a selection; until then nobody can say which of its sets may use channels. */
  readonly selected: boolean
  isEnabled(featureSet: string): boolean
  /** Whether the server announced a capability, and it may be used. */
  isGranted(path: string): boolean
}

/** What hosts tell of channels beside their messages, to servers that name it. */
export type ToldOfChannels = 'channels.streaming' | 'channels.typing' | 'channels.acknowledge'

const mostChannels = 10_000
const mostMessages = 1_000
const longestId = 512
const longestChannel = 4_096

/** The channels that one server has registered, and what comes from them. */
export class Channels {
  /** Registered, some of them perhaps before anybody agreed to a set that has channels. */
  readonly #registered = new Map<string, WireChannel>()
  readonly #port: ChannelPort

  constructor(port: ChannelPort) {
    this.#port = port
  }

  /** Those of sets that may have channels. */
  get known(): ReadonlyMap<string, WireChannel> {
    return this.#port.admitted('channels').length > 0 ? this.#registered : new Map()
  }

  /** Throws where no set may do this with channels: then nothing is sent. */
  require(method: string, use: 'channels' | 'channels.publish'): void {
    if (this.#port.announced?.channels !== true) throw unannounced(method, 'channels')
    if (this.#port.admitted(use).length > 0) return
    throw new McpError('feature-set-disabled', `${this.#noTaker(use)}, so ${method} was not sent`, { data: { use } })
  }

  /**
   * Whether the server is told this. Its announcement may be a mere `true` that means less: so an enabled set must name it, too, and be
   * one that may have channels. Of the streams the name is a use of its own, which the config may give as well.
   */
  hears(path: ToldOfChannels): boolean {
    if (!this.#port.isGranted(path)) return false
    if (path === 'channels.streaming') return this.#port.admitted(path).length > 0
    return this.#port.admitted('channels').some(name => this.#port.announced?.sets.get(name)?.uses.includes(path) === true)
  }

  answerers(): readonly Answerer[] {
    const register = (params: Params): ChannelVerdicts => this.#add(params['channels'])
    const change = (params: Params): ChannelVerdicts => this.#change(params)
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

  #change({ added, updated, removed }: Params): ChannelVerdicts {
    for (const gone of Array.isArray(removed) ? removed : [])
      this.#registered.delete((isRecord(gone) ? gone['id'] : gone) as string)
    const changed = [added, updated].flatMap(some => (Array.isArray(some) ? some : []))
    return this.#add(changed)
  }

  /** Servers wait for this before they read anything else. So it is taken before the selection, and counts once that allows it. */
  #add(channels: unknown): ChannelVerdicts {
    const { announced, selected } = this.#port
    if (announced?.channels === false) throw unannounced(registerChannels.name, 'channels')
    const allowed = !selected || this.#port.admitted('channels').length > 0
    const results = (channels as readonly WireChannel[]).map(channel => {
      const { id } = channel
      if (!allowed) return { id: clip(id, longestId), accepted: false, reason: this.#noTaker('channels') }
      if (id.length > longestId) return { id: clip(id), accepted: false, reason: `An id has at most ${longestId} characters` }
      const accepted = this.#registered.has(id) || this.#registered.size < mostChannels
      if (accepted) this.#registered.set(id, small(channel))
      return accepted ? { id, accepted } : { id, accepted, reason: `At most ${mostChannels} channels` }
    })
    return { results }
  }

  async #incoming(messages: readonly Params[]): Promise<Params> {
    if (this.#port.announced?.channels !== true) throw unannounced(incomingMessages.name, 'channels')
    if (messages.length > mostMessages) throw new McpError('invalid-params', `params.messages must be at most ${mostMessages}`)
    const results: Params[] = []
    // One after the other: their order is the channel's.
    for (const message of messages) results.push(await this.#take(message))
    return { results }
  }

  async #take(message: Params): Promise<Params> {
    const { messageId } = message
    const refused = (reason: string): Params => ({ messageId, accepted: false, reason })
    // Messages name no set: it is an enabled one that says it takes them.
    const [featureSet] = this.#port.admitted('channels.incoming')
    if (featureSet === undefined) return refused(this.#untaken())
    const read = readIncoming(message, featureSet, this.#port.now())
    if (read === undefined) return refused('It needs a channelId and a messageId')
    for (const what of read.dropped) {
      const said = `Of the message ${quoted(echo(messageId))} was left out: ${what}`
      this.#port.diagnose(why('CONTENT_DROPPED', 'content', said, 'Ask the author of the server to send content that MCP has'))
    }
    const answer = await this.#port.onPush(read.event)
    if (answer.accepted) return { messageId, accepted: true }
    const { reason, retryAfterMs } = answer
    // Whoever keeps what it sends comes again then.
    return retryAfterMs === undefined ? refused(reason) : { ...refused(reason), retryAfterMs }
  }

  /** Where one set is enabled, it is the one that should have declared it: whoever runs the host is told so. */
  #untaken(): string {
    const names = [...(this.#port.announced?.sets.keys() ?? [])]
    const [only, ...more] = names.filter(name => this.#port.isEnabled(name))
    try {
      if (only !== undefined && more.length === 0) this.#port.admit(only, 'channels.incoming')
    } catch (error) {
      if (!(error instanceof McpError)) throw error
    }
    return this.#noTaker('channels.incoming')
  }

  /** Whose it would be to change that: the host has not enabled a set that declares it, or there is none. */
  #noTaker(use: SetUse): string {
    const declaring = [...(this.#port.announced?.sets ?? [])].filter(([, facts]) => declaredUses(facts).has(use))
    if (declaring.length === 0) return `No feature set of the server declares that it uses ${use}`
    return `The host has not enabled ${declaring
      .map(([name]) => quoted(name))
      .slice(0, 3)
      .join(' or ')}, which would use ${use}`
  }
}

/** As it was said, unless that is more than a channel has to say: then what it is called. */
function small(channel: WireChannel): WireChannel {
  if (JSON.stringify(channel).length <= longestChannel) return channel
  const { id, type, label } = channel
  return {
    id,
    ...(typeof type === 'string' ? { type: clip(type) } : {}),
    ...(typeof label === 'string' ? { label: clip(label, 200) } : {}),
  }
}

/** A stream to a server that takes it. */
export interface ChannelStream {
  push(delta: string): void
  /** It is over. `text`: the answer as it is published, or what was said until it broke off. Settles when the server has heard it. */
  end(text: string): Promise<void>
}

interface OutgoingParts {
  /** Whether the server may still hear it: consent may go while somebody writes. */
  readonly allowed: () => boolean
  readonly chunk: (index: number, delta: string) => Promise<unknown>
  readonly complete: (text: string) => Promise<unknown>
  readonly failed: (error: unknown) => void
}

/** Sends an answer into a channel, one piece at a time. */
export class OutgoingStream implements ChannelStream {
  readonly #parts: OutgoingParts
  #waiting = ''
  #index = 0
  #broken = false
  #sending: Promise<void> | undefined = undefined

  constructor(parts: OutgoingParts) {
    this.#parts = parts
  }

  push(delta: string): void {
    if (this.#broken) return
    this.#waiting += delta
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined
    })
  }

  /** Who has heard nothing needs no end. */
  async end(text: string): Promise<void> {
    await this.#sending
    const heard = this.#index > 0 && !this.#broken && this.#parts.allowed()
    this.#broken = true
    if (heard) await this.#parts.complete(text).catch(this.#parts.failed)
  }

  async #send(): Promise<void> {
    try {
      while (this.#waiting !== '' && this.#parts.allowed()) {
        const delta = this.#waiting
        this.#waiting = ''
        await this.#parts.chunk(this.#index++, delta)
      }
      // What may not be heard is not kept for later either.
      if (this.#waiting !== '') this.#broken = true
    } catch (error) {
      this.#broken = true
      this.#parts.failed(error)
    }
    if (this.#broken) this.#waiting = ''
  }
}
