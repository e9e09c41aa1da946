/**
 * Content blocks of every dialect, and canonical ones: 0.2 keeps media under `source` with a `media_type`, later peers write MCP's flat
 * form, and a plain string stands for one block of text. Reading never fails: what is no content is named and left out.
 */
import { echo } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { type LiveBlock, type LiveLink, writeBlocks } from '../content/messages.ts'

export type ContentForm = 'source' | 'flat'

interface ReadContent {
  readonly blocks: readonly LiveBlock[]
  /** What was left out, a few words each. */
  readonly dropped: readonly string[]
}

/** What was left out, for those who are told of each: of many the first ones, and how many more. */
export function fewOf(dropped: readonly string[]): readonly string[] {
  return dropped.length <= mostTold ? dropped : [...dropped.slice(0, mostTold - 1), `${dropped.length - mostTold + 1} more`]
}

const mostTold = 10

export function readContent(wire: unknown): ReadContent {
  if (typeof wire === 'string') return { blocks: [{ type: 'text', text: wire }], dropped: [] }
  if (!Array.isArray(wire)) return { blocks: [], dropped: ['content that is neither text nor blocks'] }
  const blocks: LiveBlock[] = []
  const dropped: string[] = []
  for (const one of wire) {
    const block = readBlock(one)
    if (typeof block === 'string') dropped.push(block)
    else blocks.push(block)
  }
  return { blocks, dropped: fewOf(dropped) }
}

/** The block, or why it is none. */
function readBlock(wire: unknown): LiveBlock | string {
  if (typeof wire === 'string') return { type: 'text', text: wire }
  if (!isRecord(wire)) return 'a block that is no object'
  const { type } = wire
  // Blocks of text without any are seen in the wild: they say nothing, and harm nobody.
  if (type === 'text') return { type, text: typeof wire['text'] === 'string' ? wire['text'] : '' }
  if (type === 'image' || type === 'audio') return readMedia(wire, type)
  if (type === 'resource_link') return readLink(wire)
  if (type === 'resource') return readResource(isRecord(wire['resource']) ? wire['resource'] : wire)
  return `a block of type "${echo(type)}"`
}

function readMedia(wire: Readonly<Record<string, unknown>>, type: 'image' | 'audio'): LiveBlock | string {
  const from = isRecord(wire['source']) ? wire['source'] : wire
  const { data } = from
  const mimeType = from['mimeType'] ?? from['media_type'] ?? wire['mimeType']
  if (typeof data === 'string') {
    return { type, data, mimeType: typeof mimeType === 'string' ? mimeType : `${type}/*` }
  }
  const uri = from['uri'] ?? from['url']
  return typeof uri === 'string' ? { type: 'resource_link', uri } : `a block of type "${type}" without data`
}

const linkMembers = ['name', 'title', 'description', 'mimeType'] as const

function readLink(wire: Readonly<Record<string, unknown>>): LiveLink | string {
  if (typeof wire['uri'] !== 'string') return 'a link without its URI'
  const said = linkMembers.filter(member => typeof wire[member] === 'string').map(member => [member, wire[member]] as const)
  return { type: 'resource_link', uri: wire['uri'], ...Object.fromEntries(said) }
}

/** An embedded resource: its text where it has any, else what it is. */
function readResource(resource: Readonly<Record<string, unknown>>): LiveBlock | string {
  const { text, blob, mimeType } = resource
  if (typeof text === 'string') return { type: 'text', text }
  const kind = typeof mimeType === 'string' ? /^(image|audio)\//.exec(mimeType)?.[1] : undefined
  if (typeof blob === 'string' && kind !== undefined)
    return { type: kind as 'image' | 'audio', data: blob, mimeType: mimeType as string }
  return readLink(resource)
}

export function writeContent(blocks: readonly LiveBlock[], form: ContentForm): readonly Readonly<Record<string, unknown>>[] {
  return writeBlocks(blocks, form === 'source')
}
