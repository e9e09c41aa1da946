/** An event of a server, as a model is told of it: between marks, because nobody but a server said it. */
import type { LiveBlock } from '../../features/live/content/messages.ts'
import type { PushEvent } from '../../features/live/push-events/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { ModelMessage } from '../models/model.ts'
import { textIn } from '../models/model.ts'
import { quote } from '../models/quoted.ts'
import { text } from './blocks.ts'

export function eventMessage(server: string, { featureSet, eventId, timestamp, origin, content, tags }: PushEvent): ModelMessage {
  const about = {
    server,
    set: featureSet,
    id: eventId,
    at: timestamp,
    ...(origin !== undefined && { origin: clip(JSON.stringify(origin), 200) }),
    ...(tags !== undefined && { tags: tags.join(' ') }),
  }
  const rest = content.filter((block): block is Exclude<LiveBlock, { type: 'text' }> => block.type !== 'text')
  return { role: 'user', content: [text(quote('event', about, textIn(content))), ...rest] }
}
