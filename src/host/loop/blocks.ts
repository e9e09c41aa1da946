/**
 * Content of tools, prompts and resources as a host keeps it: blocks of few kinds, with nothing of the wire in them. It is foreign
 * unless it is marked as the host's own words; see `foreign.ts` for how it gets into a prompt.
 */
import type { LiveBlock, LiveText } from '../../features/live/content/messages.ts'
import type { ContentBlock, ResourceContents } from '../../features/mcp/content/messages.ts'
import { echo } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'

/** Words of the host itself. Made here alone: what servers send is copied member by member, so nobody else can say so. */
interface OwnText extends LiveText {
  readonly own: true
}

export function own(words: string): LiveBlock {
  const block: OwnText = { type: 'text', text: words, own: true }
  return block
}

export function isOwn(block: LiveBlock): block is OwnText {
  return block.type === 'text' && 'own' in block && block.own === true
}

/** Text that a result has beside its blocks is not told twice; a result of a structured value alone is its JSON. */
export function resultBlocks(content: readonly ContentBlock[], structured: unknown): readonly LiveBlock[] {
  if (content.length === 0 && structured !== undefined) return [text(JSON.stringify(structured))]
  return content.flatMap(block => blockOf(block))
}

export function blockOf(block: ContentBlock): readonly LiveBlock[] {
  switch (block.type) {
    case 'text':
      return [text(typeof block.text === 'string' ? block.text : '')]
    case 'image':
    case 'audio':
      if (typeof block.data !== 'string' || typeof block.mimeType !== 'string') return [text(`[${block.type} without data]`)]
      return [{ type: block.type, data: block.data, mimeType: block.mimeType }]
    case 'resource_link': {
      const { uri, name, title, description, mimeType } = block
      const said = Object.entries({ name, title, description, mimeType }).filter(([, value]) => typeof value === 'string')
      return [{ type: 'resource_link', uri: typeof uri === 'string' ? uri : '', ...Object.fromEntries(said) }]
    }
    case 'resource':
      return isRecord(block.resource) ? embedded(block.resource) : [text('[a resource without contents]')]
    default:
      return [text(`[a block of the unknown type ${echo((block as { type?: unknown }).type)}]`)]
  }
}

/** A resource amid other blocks says which one it is. */
function embedded(resource: ResourceContents): readonly LiveBlock[] {
  const { uri, mimeType } = resource
  return [text(`[resource ${echo(uri, 400)}${mimeType === undefined ? '' : `, ${echo(mimeType)}`}]`), contentsBlock(resource)]
}

/** What a resource holds: text, pictures and sound as such, anything else by its name. */
export function contentsBlock({ uri, mimeType, text: words, blob }: ResourceContents): LiveBlock {
  if (typeof words === 'string') return text(words)
  const kind = typeof mimeType === 'string' ? /^(image|audio)\//.exec(mimeType)?.[1] : undefined
  const data = typeof blob === 'string' ? blob : ''
  if (typeof mimeType === 'string' && typeof blob === 'string' && (kind === 'image' || kind === 'audio'))
    return { type: kind, data, mimeType }
  return text(`[${echo(uri, 200)}: ${echo(mimeType ?? 'binary content')}, ${Math.floor((data.length * 3) / 4)} bytes, not shown]`)
}

export function text(words: string): LiveBlock {
  return { type: 'text', text: words }
}
