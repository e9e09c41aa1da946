/** What an upstream answered, as clients of the gateway read it: without what was said to the gateway alone, and with addresses that hold here. */
import { NS } from '../../core/namespace.ts'
import { declared } from '../../engine/extensions.ts'
import type { ContentBlock } from '../../features/mcp/content/messages.ts'
import type { PromptMessage } from '../../features/mcp/prompts/messages.ts'
import { relatedTaskKey } from '../../features/mcp/tasks/messages.ts'
import type { CallToolResult } from '../../features/mcp/tools/messages.ts'
import { isRecord, type Params } from '../../jsonrpc/message.ts'
import type { Peer } from '../../revisions/index.ts'

/** Keys in the `_meta` of a result that belong to one connection: who answers on it, and for which task or subscription. */
const between: ReadonlySet<string> = new Set([
  'io.modelcontextprotocol/serverInfo',
  'io.modelcontextprotocol/subscriptionId',
  relatedTaskKey,
])

/** Under which address the caller reads what the upstream calls so. */
export type Address = (uri: string) => string

/** So many addresses of one result are looked at. */
const mostAddresses = 1_000

/** Undefined where nothing is left. */
export function returnedMeta(meta: unknown): Params | undefined {
  return isRecord(meta) ? kept(meta, key => !between.has(key)) : undefined
}

/** The most common result has nothing of it, and is given back as it is. */
export function returned(result: CallToolResult, address: Address): CallToolResult {
  const content = Array.isArray(result.content) ? readdressed(result.content, address) : result.content
  if (result._meta === undefined && content === result.content) return result
  return withMeta({ ...result, content }, returnedMeta(result._meta))
}

/** Without what extensions add for those who declare them, where this caller did not: servers speak of it to the gateway. */
export function plainFor(peer: Peer, result: CallToolResult): CallToolResult {
  const { content, _meta: said } = result
  const noted = Array.isArray(content) && content.some(block => isRecord(block) && block['_meta'] !== undefined)
  if (said === undefined && !noted) return result
  const blocks = noted ? content.map(block => withMeta(block, plainMeta(peer, block._meta))) : content
  return withMeta({ ...result, content: blocks }, plainMeta(peer, said))
}

const own = `${NS}/`

export function plainMeta(peer: Peer, meta: Params | undefined): Params | undefined {
  return meta && kept(meta, key => !key.startsWith(own) || declared(peer, key) !== undefined)
}

function kept(meta: Params, keep: (key: string) => boolean): Params | undefined {
  const keys = Object.keys(meta)
  const left = keys.filter(keep)
  if (left.length === 0) return undefined
  return left.length === keys.length ? meta : Object.fromEntries(left.map(key => [key, meta[key]]))
}

function withMeta<T extends { readonly _meta?: Params }>(value: T, meta: Params | undefined): T {
  if (meta === value._meta) return value
  const { _meta, ...rest } = value
  return { ...rest, ...(meta !== undefined && { _meta: meta }) } as T
}

export function returnedMessages(messages: readonly PromptMessage[], address: Address): readonly PromptMessage[] {
  const contents = messages.map(({ content }) => content)
  const told = readdressed(contents, address)
  return told === contents ? messages : messages.map((message, i) => ({ ...message, content: told[i] ?? message.content }))
}

/** The same list where no block of it has an address that is another one here. */
function readdressed(content: readonly ContentBlock[], address: Address): readonly ContentBlock[] {
  let made: ContentBlock[] | undefined
  let seen = 0
  for (let i = 0; i < content.length; i++) {
    const block = content[i]
    const uri = uriOf(block)
    if (block === undefined || uri === undefined) continue
    if (++seen > mostAddresses) break
    const shown = address(uri)
    if (shown === uri) continue
    made ??= [...content]
    made[i] = withUri(block, shown)
  }
  return made ?? content
}

function uriOf(block: unknown): string | undefined {
  if (!isRecord(block)) return undefined
  const { type, resource } = block
  const uri = type === 'resource_link' ? block['uri'] : type === 'resource' && isRecord(resource) ? resource['uri'] : undefined
  return typeof uri === 'string' ? uri : undefined
}

function withUri(block: ContentBlock, uri: string): ContentBlock {
  if (block.type === 'resource_link') return { ...block, uri }
  return block.type === 'resource' ? { ...block, resource: { ...block.resource, uri } } : block
}
