/** Content of tools, prompts and resources as a model is given it. */
import type { LiveBlock } from '../../features/live/content/messages.ts'
import type { ContentBlock, ResourceContents } from '../../features/mcp/content/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { quote } from '../models/quoted.ts'

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
      return [{ type: block.type, data: block.data, mimeType: block.mimeType }]
    case 'resource_link':
      return [{ type: 'resource_link', uri: block.uri, name: block.name, ...(block.mimeType && { mimeType: block.mimeType }) }]
    case 'resource':
      return contentsBlocks(undefined, [block.resource])
    default:
      return [text(`[a block of the unknown type ${clip(String((block as { type?: unknown }).type))}]`)]
  }
}

/** What a resource holds: text between marks, pictures and sound as such, anything else by its name. */
export function contentsBlocks(server: string | undefined, contents: readonly ResourceContents[]): readonly LiveBlock[] {
  return contents.map(({ uri, mimeType, text: words, blob }): LiveBlock => {
    if (words !== undefined) return text(quote('resource', { server, uri, type: mimeType }, words))
    const kind = /^(image|audio)\//.exec(mimeType ?? '')?.[1]
    if (blob !== undefined && mimeType !== undefined && (kind === 'image' || kind === 'audio'))
      return { type: kind, data: blob, mimeType }
    return text(
      `[${clip(uri, 200)}: ${mimeType ?? 'binary content'}, ${Math.floor(((blob?.length ?? 0) * 3) / 4)} bytes, not shown]`,
    )
  })
}

export function text(words: string): LiveBlock {
  return { type: 'text', text: words }
}
