/** Pushed events and messages of channels, of every dialect, as one kind of event. What is not known of them is passed on as it is. */
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { channelEventId } from '../channels/messages.ts'
import { isTimestamp, type PushEvent, type WirePush } from '../push-events/messages.ts'
import { readContent } from './content.ts'

interface ReadPush {
  readonly event: PushEvent
  readonly dropped: readonly string[]
}

const known: ReadonlySet<string> = new Set(['featureSet', 'eventId', 'timestamp', 'origin', 'payload', 'tags'])

/** Undefined: it is about nothing. A server that means that says so: `origin.silent` is the mark of one that merely shows signs of life. */
export function readPush(wire: WirePush): ReadPush | undefined {
  const { content, ...payload } = wire.payload
  const { blocks, dropped } = readContent(content)
  if (blocks.length === 0 && wire.origin?.['silent'] !== true) return undefined
  const extra = others(wire as unknown as Params, known)
  const more = Object.keys(payload).length === 0 ? extra : { ...extra, payload }
  return {
    dropped,
    event: {
      featureSet: wire.featureSet,
      eventId: wire.eventId,
      timestamp: wire.timestamp,
      content: blocks,
      ...(wire.origin === undefined ? {} : { origin: wire.origin }),
      ...(wire.tags === undefined ? {} : { tags: expandTags(wire.tags) }),
      ...(Object.keys(more).length === 0 ? {} : { extra: more }),
    },
  }
}

const knownOfMessages: ReadonlySet<string> = new Set([
  'channelId',
  'messageId',
  'threadId',
  'author',
  'timestamp',
  'content',
  'tags',
])

/** A message of a channel; undefined where it does not say which one, or of which channel. */
export function readIncoming(wire: Params, featureSet: string, now: number): ReadPush | undefined {
  const { channelId, messageId, threadId, author, timestamp, tags } = wire
  if (typeof channelId !== 'string' || typeof messageId !== 'string') return undefined
  const { blocks, dropped } = readContent(wire['content'])
  const extra = others(wire, knownOfMessages)
  return {
    dropped,
    event: {
      featureSet,
      eventId: channelEventId(channelId, messageId),
      timestamp: isTimestamp(timestamp) ? (timestamp as string) : new Date(now).toISOString(),
      origin: {
        channelId,
        messageId,
        ...(threadId === undefined ? {} : { threadId }),
        ...(isRecord(author) ? { author } : {}),
      },
      channel: { channelId, messageId, ...(typeof threadId === 'string' ? { threadId } : {}) },
      content: blocks,
      ...(Array.isArray(tags) ? { tags: expandTags(tags.filter(tag => typeof tag === 'string')) } : {}),
      ...(Object.keys(extra).length === 0 ? {} : { extra }),
    },
  }
}

/** What follows from a tag, whoever sent it (0.5 §16.3). Tags sort events; they allow nothing. */
const implied: ReadonlyMap<string, readonly string[]> = new Map([
  ['chat:mention', ['chat:addressed']],
  ['chat:reply', ['chat:addressed']],
  ['chat:dm', ['chat:addressed', 'chat:private']],
])

export function expandTags(tags: readonly string[]): readonly string[] {
  const all = new Set(tags.flatMap(tag => [tag, ...(implied.get(tag) ?? [])]))
  if (all.has('chat:addressed')) all.delete('chat:ambient')
  return [...all]
}

function others(wire: Params, names: ReadonlySet<string>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(wire).filter(([name]) => !names.has(name)))
}
