/**
 * Channels that a server offers (MCP Live 0.4): registered with hosts that have their set enabled, messages that come in there, and what
 * hosts publish in them. A host that is told of no channel can publish in none.
 */
import type { Clock } from '../../../core/clock.ts'
import type { Trace } from '../../../core/log-trace.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type Awaitable, isRecord, type Params } from '../../../jsonrpc/message.ts'
import { blocksOf, type LiveBlock, type LiveInput, writeBlocks } from '../content/messages.ts'
import { readContent } from '../dialects/messages.ts'
import { liveErrorTexts } from '../feature-sets/messages.ts'
import type { LiveCaller, LiveHost } from '../hosts/messages.ts'
import {
  channelsChanged,
  closeChannel,
  incomingMessages,
  listChannels,
  openChannel,
  publishToChannel,
  publishToChannelNotice,
  registerChannels,
  type WireChannel,
  type WireIncoming,
} from './messages.ts'

export interface ChannelOptions {
  /** As people read it, such as `#general`. */
  readonly label?: string
  /** What kind it is, such as `discord`. */
  readonly type?: string
}

/** A message that somebody wrote in a channel. */
export interface ChannelMessage {
  readonly content: LiveInput
  /** One per message; the same whenever it is sent again. Default: a new one. */
  readonly messageId?: string
  readonly threadId?: string
  readonly author?: { readonly id?: string; readonly name?: string }
  /** When it was written, ISO 8601. Default: now. */
  readonly timestamp?: string
  /** `chat:mention`, `chat:reply`, `chat:dm`, or `chat:ambient` for what is meant for nobody in particular. */
  readonly tags?: readonly string[]
  /** Only for hosts of this principal, by its id. Default: for all. */
  readonly to?: string
}

/** What hosts made of a message: accepted where one of them took it. */
export interface ChannelVerdict {
  readonly messageId: string
  readonly accepted: boolean
  readonly reason?: string
}

/** What a host publishes. */
export interface Published {
  readonly channelId: string
  readonly content: readonly LiveBlock[]
  /** Of the content, its texts. */
  readonly text: string
  readonly conversationId?: string
  readonly threadId?: string
  /** The message that it answers. */
  readonly inReplyTo?: string
}

/** Posts what a host publishes; may give the id under which it stands now. What it throws the host is told. */
export type PublishHandler = (
  message: Published,
  context: { readonly signal: AbortSignal },
) => Awaitable<undefined | { readonly messageId?: string }>

export interface ChannelsParts {
  readonly clock: Clock
  readonly trace: Trace
  readonly hosts: () => Iterable<LiveHost>
  readonly caller: (exchange: Exchange) => LiveCaller | undefined
  readonly publisher: (featureSet: string) => PublishHandler | undefined
  /** Why nobody hears a set: no host, or none that has it enabled. */
  readonly unheard: (featureSet: string) => Error
}

export interface ChannelsServer {
  readonly side: Side
  add(featureSet: string, id: string, options: ChannelOptions): void
  remove(id: string): void
  /** The set is no longer offered, nor are its channels. */
  drop(featureSet: string): void
  incoming(featureSet: string, id: string, message: ChannelMessage): Promise<ChannelVerdict>
  /** Hosts have come, or have selected: each is told of the channels that it may know. */
  sync(): void
}

interface Registered {
  readonly featureSet: string
  readonly wire: WireChannel
}

const answerMs = 30_000

export function channelsServer(parts: ChannelsParts): ChannelsServer {
  const channels = new Map<string, Registered>()
  const told = new WeakMap<LiveHost, Map<string, WireChannel>>()
  let planned = false
  let everOffered = false
  const syncAll = (): void => {
    planned = false
    for (const host of parts.hosts()) if (host.reachable) tell(parts, host, channels, told)
  }
  // After what is being answered now: hosts wait for that first.
  const sync = (): void => {
    if (planned || (channels.size === 0 && !everOffered)) return
    planned = true
    parts.clock.setTimeout(syncAll, 0, true)
  }
  const remove = (id: string): void => {
    channels.delete(id)
    sync()
  }
  return {
    side: sideOf(parts, channels),
    add: (featureSet, id, { label, type }) => {
      const wire = { id, ...(type === undefined ? {} : { type }), ...(label === undefined ? {} : { label }) }
      channels.set(id, { featureSet, wire })
      everOffered = true
      sync()
    },
    remove,
    drop: featureSet => {
      for (const [id, channel] of channels) if (channel.featureSet === featureSet) remove(id)
    },
    incoming: (featureSet, id, message) => incoming(parts, channels, featureSet, id, message),
    sync,
  }
}

/** Registers with a host that knows none yet; to others what has changed is told. */
function tell(
  { trace }: ChannelsParts,
  host: LiveHost,
  channels: ReadonlyMap<string, Registered>,
  told: WeakMap<LiveHost, Map<string, WireChannel>>,
): void {
  const known = told.get(host)
  const now = new Map(
    [...channels].filter(([, { featureSet }]) => host.selected.enabled(featureSet)).map(([id, { wire }]) => [id, wire]),
  )
  const added = [...now].filter(([id]) => known?.has(id) !== true).map(([, wire]) => wire)
  const removed = [...(known?.keys() ?? [])].filter(id => !now.has(id))
  if (added.length + removed.length === 0) return
  told.set(host, now)
  const asking =
    known === undefined || known.size === 0
      ? host.request(registerChannels, { channels: added }, { timeoutMs: answerMs })
      : host.request(channelsChanged, { added, removed }, { timeoutMs: answerMs })
  asking.catch(error => {
    trace('channels-not-registered', error)
    if (told.get(host) === now) told.delete(host)
  })
}

async function incoming(
  { clock, hosts, unheard }: ChannelsParts,
  channels: ReadonlyMap<string, Registered>,
  featureSet: string,
  id: string,
  message: ChannelMessage,
): Promise<ChannelVerdict> {
  if (channels.get(id)?.featureSet !== featureSet) throw new Error(`The channel "${clip(id)}" was removed: make it again`)
  const { content, messageId = crypto.randomUUID(), timestamp = new Date(clock.now()).toISOString(), to, ...rest } = message
  const blocks = blocksOf(content, `A message of the channel "${clip(id)}"`)
  const taking = [...hosts()].filter(
    host => host.reachable && host.selected.enabled(featureSet) && (to === undefined || host.principal === to),
  )
  if (taking.length === 0) throw unheard(featureSet)
  const answers = await Promise.allSettled(
    taking.map(async host => {
      const wire: WireIncoming = {
        ...rest,
        channelId: id,
        messageId,
        timestamp,
        content: writeBlocks(blocks, host.dialect.source),
      }
      const answer = await host.request(incomingMessages, { messages: [{ ...wire }] }, { timeoutMs: answerMs })
      return verdictIn(answer, messageId)
    }),
  )
  const verdicts = answers.flatMap(answer => (answer.status === 'fulfilled' ? [answer.value] : []))
  const [failed] = answers.flatMap(answer => (answer.status === 'rejected' ? [answer.reason] : []))
  const verdict = verdicts.find(({ accepted }) => accepted) ?? verdicts[0]
  if (verdict === undefined) throw failed
  return verdict
}

/** Hosts answer for each message; one that merely answers has taken it. */
function verdictIn(answer: unknown, messageId: string): ChannelVerdict {
  const results: unknown = isRecord(answer) ? answer['results'] : undefined
  const [said] = Array.isArray(results) ? (results as readonly unknown[]) : []
  if (!isRecord(said) || said['accepted'] !== false) return { messageId, accepted: true }
  return { messageId, accepted: false, reason: typeof said['reason'] === 'string' ? said['reason'] : 'refused' }
}

function sideOf(parts: ChannelsParts, channels: ReadonlyMap<string, Registered>): Side {
  const offered = (): boolean => channels.size > 0
  const found = (exchange: Exchange): Registered => {
    const caller = parts.caller(exchange)
    const { channelId } = exchange.params
    const channel = typeof channelId === 'string' ? channels.get(channelId) : undefined
    if (caller === undefined) throw new McpError('method-not-found', 'Channels are for hosts that declared MCP Live')
    if (channel === undefined)
      throw new McpError('invalid-params', `There is no channel "${clip(String(channelId))}" here: use one that was registered`, {
        data: { channelId: clip(String(channelId)) },
      })
    const { featureSet } = channel
    if (caller.selected.enabled(featureSet)) return channel
    throw new McpError('feature-set-disabled', liveErrorTexts['feature-set-disabled'], { data: { featureSet } })
  }
  const publish = async (exchange: Exchange): Promise<Params> => {
    const { featureSet } = found(exchange)
    const handler = parts.publisher(featureSet)
    if (handler === undefined)
      throw new McpError('method-not-found', `Nothing can be published in the channels of "${featureSet}": it has no onPublish`)
    const { channelId, conversationId, threadId, inReplyTo, content } = exchange.params as Params & { readonly channelId: string }
    const { blocks } = readContent(content)
    const said = Object.entries({ conversationId, threadId, inReplyTo }).filter(([, value]) => typeof value === 'string')
    const text = blocks.flatMap(block => (block.type === 'text' ? [block.text] : [])).join('\n')
    const posted = await handler({ channelId, content: blocks, text, ...Object.fromEntries(said) }, { signal: exchange.signal })
    return { delivered: true, ...(posted?.messageId === undefined ? {} : { messageId: posted.messageId }) }
  }
  return {
    handlers: [
      [publishToChannel, { offered, execute: publish }],
      [publishToChannelNotice, async (exchange: Exchange) => void (await publish(exchange))],
      [openChannel, { offered, execute: (exchange: Exchange) => ({ channel: found(exchange).wire }) }],
      [closeChannel, { offered, execute: (exchange: Exchange) => ({ closed: found(exchange).wire.id }) }],
      [
        listChannels,
        {
          offered,
          execute: (exchange: Exchange) => {
            const selected = parts.caller(exchange)?.selected
            const shown = [...channels.values()].filter(({ featureSet }) => selected?.enabled(featureSet) === true)
            return { channels: shown.map(({ wire }) => wire) }
          },
        },
      ],
    ],
  }
}
