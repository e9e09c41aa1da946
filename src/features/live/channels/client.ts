/**
 * A small inbox for channels of MCP Live 0.4 and later: chat servers deliver there, not by pushes. They wait for the answer to a
 * registration before they do anything else, so it is given at once.
 */
import { quoted, why } from '../../../core/why.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip, echo } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { type Answerer, type LiveGate, unannounced } from '../answers/messages.ts'
import { readIncoming } from '../dialects/messages.ts'
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

export interface ChannelPort extends LiveGate {
  readonly now: () => number
  onPush(event: PushEvent): Promise<PushAnswer>
  isEnabled(featureSet: string): boolean
}

const mostChannels = 10_000
const mostMessages = 1_000
const longestId = 512
const longestChannel = 4_096

export class Channels {
  readonly known = new Map<string, WireChannel>()
  readonly #port: ChannelPort

  constructor(port: ChannelPort) {
    this.#port = port
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
    for (const gone of Array.isArray(removed) ? removed : []) this.known.delete((isRecord(gone) ? gone['id'] : gone) as string)
    const changed = [added, updated].flatMap(some => (Array.isArray(some) ? some : []))
    return this.#add(changed)
  }

  #add(channels: unknown): ChannelVerdicts {
    const results = (channels as readonly WireChannel[]).map(channel => {
      const { id } = channel
      if (id.length > longestId) return { id: clip(id), accepted: false, reason: `An id has at most ${longestId} characters` }
      const accepted = this.known.has(id) || this.known.size < mostChannels
      if (accepted) this.known.set(id, small(channel))
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
    const featureSet = this.#setOf()
    if (featureSet === undefined) return refused('No enabled feature set takes messages of channels')
    const read = readIncoming(message, featureSet, this.#port.now())
    if (read === undefined) return refused('It needs a channelId and a messageId')
    for (const what of read.dropped) {
      const said = `Of the message ${quoted(echo(messageId))} was left out: ${what}`
      this.#port.diagnose(why('CONTENT_DROPPED', 'content', said, 'Ask the author of the server to send content that MCP has'))
    }
    const answer = await this.#port.onPush(read.event)
    return answer.accepted ? { messageId, accepted: true } : refused(answer.reason)
  }

  /** Messages name no set: it is the enabled one that says it takes them, else the only one there is. */
  #setOf(): string | undefined {
    const sets = [...(this.#port.announced?.sets ?? [])]
    const takers = sets.filter(([, { uses }]) => uses.some(use => /^channels(\.(incoming|observe))?$/.test(use)))
    const [name] = (takers.length > 0 ? takers : sets.length === 1 ? sets : []).find(([one]) => this.#port.isEnabled(one)) ?? []
    return name
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
