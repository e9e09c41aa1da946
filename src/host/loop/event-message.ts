/** Events of a server, as a model is told of them: each in a quotation of its own, because nobody but a server said it. */
import type { LiveBlock } from '../../features/live/content/messages.ts'
import type { PushEvent } from '../../features/live/push-events/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { ModelMessage } from '../models/model.ts'
import { own } from './blocks.ts'
import { fromServer } from './foreign.ts'

/** Of those that were gathered into one turn each keeps its own origin. */
export function eventMessage(server: string, events: readonly PushEvent[]): ModelMessage {
  const content = events.flatMap(event => fromServer('event', aboutOf(server, event), event.content))
  const { channel } = events.at(-1) ?? {}
  return { role: 'user', content: channel === undefined ? content : [...content, answerHere(server, channel.channelId)] }
}

function answerHere(server: string, channelId: string): LiveBlock {
  const where = `the channel ${JSON.stringify(clip(channelId, 200))} of ${clip(server)}`
  return own(`[Your answer is posted in ${where} by itself. Answer with nothing to stay silent.]`)
}

function aboutOf(server: string, { featureSet, eventId, timestamp, origin, tags }: PushEvent) {
  return {
    server,
    set: featureSet,
    id: eventId,
    at: timestamp,
    ...(origin !== undefined && { origin: clip(JSON.stringify(origin), 200) }),
    ...(tags !== undefined && { tags: tags.join(' ') }),
  }
}
