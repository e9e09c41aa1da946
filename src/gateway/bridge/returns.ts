/**
 * Adapts results of upstreams for clients: rewrites resource addresses, withholds what the client may not read, and filters `_meta` of
 * extensions. Pure functions, used by the relay and the catalog.
 */
import { declaredSettings } from '../../engine/extensions.ts'
import { NS } from '../../engine/method.ts'
import { metaWhere, withoutReservedMeta } from '../../engine/reserved.ts'
import type { ContentBlock } from '../../features/mcp/content/messages.ts'
import type { PromptMessage } from '../../features/mcp/prompts/messages.ts'
import type { CallToolResult } from '../../features/mcp/tools/messages.ts'
import { operationalExtension } from '../../features/reliability/cost/messages.ts'
import { referencesExtension } from '../../features/reliability/data-references/messages.ts'
import { mediaExtension } from '../../features/reliability/media/messages.ts'
import { problemExtension } from '../../features/reliability/problem/messages.ts'
import { provenanceExtension } from '../../features/reliability/provenance/messages.ts'
import { stateExtension } from '../../features/reliability/session-state/messages.ts'
import { streamingExtension } from '../../features/reliability/streaming/messages.ts'
import { isRecord, type Params } from '../../jsonrpc/message.ts'
import type { Peer } from '../../revisions/index.ts'

/** How addresses in a result are shown to one client. */
interface AddressView {
  /** The address that the client uses for an upstream's own address. */
  address(uri: string): string
  /** Whether the client may read it. */
  readable(uri: string): boolean
}

/** Addresses per result that are rewritten; the rest stay as they are. */
const mostAddresses = 1_000

/** A result with rewritten addresses; the same object where nothing changes, which is the most common case. */
export function returned(result: CallToolResult, told: AddressView): CallToolResult {
  const content = Array.isArray(result.content) ? readdressed(result.content, told) : result.content
  return content === result.content ? result : { ...result, content }
}

/** Removes extension data that this client did not declare: upstreams send it because the gateway declares it. */
export function plainFor(peer: Peer, result: CallToolResult): CallToolResult {
  const { content, _meta: said } = result
  const noted = Array.isArray(content) && content.some(block => isRecord(block) && block['_meta'] !== undefined)
  if (said === undefined && !noted) return result
  const blocks = noted ? content.map(block => withMeta(block, plainMeta(peer, block._meta))) : content
  return withMeta({ ...result, content: blocks }, plainMeta(peer, said))
}

/** The prefix of this package's extension keys. */
const own = `${NS}/`

/** The `_meta` of a result without extensions of ours that this peer did not declare. */
export function plainMeta(peer: Peer, meta: Params | undefined): Params | undefined {
  return meta && metaWhere(meta, key => !key.startsWith(own) || declaredSettings(peer, key) !== undefined)
}

/** The same object where `meta` is unchanged. */
function withMeta<T extends { readonly _meta?: Params | undefined }>(value: T, meta: Params | undefined): T {
  if (meta === value._meta) return value
  const { _meta, ...rest } = value
  return { ...rest, ...(meta !== undefined && { _meta: meta }) } as T
}

/** The messages of a prompt with rewritten addresses. */
export function returnedMessages(messages: readonly PromptMessage[], told: AddressView): readonly PromptMessage[] {
  const contents = messages.map(({ content }) => content)
  const made = readdressed(contents, told)
  return made === contents ? messages : messages.map((message, i) => ({ ...message, content: made[i] ?? message.content }))
}

/** Rewrites the addresses of content blocks. Returns the same array where nothing changes. */
function readdressed(content: readonly ContentBlock[], told: AddressView): readonly ContentBlock[] {
  let made: ContentBlock[] | undefined
  let seen = 0
  for (let i = 0; i < content.length; i++) {
    const block = content[i]
    const uri = uriOf(block)
    if (block === undefined || uri === undefined) continue
    const shown = shownBlock(block, uri, told, ++seen > mostAddresses)
    if (shown === block) continue
    made ??= [...content]
    made[i] = shown
  }
  return made ?? content
}

/** Replaces a block that the client may not read by a text. `asItIs`: the limit of addresses is reached. */
function shownBlock(block: ContentBlock, uri: string, { address, readable }: AddressView, asItIs: boolean): ContentBlock {
  if (!readable(uri)) return { type: 'text', text: withheld }
  const shown = asItIs ? uri : address(uri)
  return shown === uri ? block : withUri(block, shown)
}

/** Text in place of a withheld resource or resource link. */
const withheld = 'The gateway removed a resource here that you are not allowed to read.'

/** The address of a resource link or an embedded resource. */
function uriOf(block: unknown): string | undefined {
  if (!isRecord(block)) return undefined
  const { type, resource } = block
  const uri = type === 'resource_link' ? block['uri'] : type === 'resource' && isRecord(resource) ? resource['uri'] : undefined
  return typeof uri === 'string' ? uri : undefined
}

/** The block with another address. */
function withUri(block: ContentBlock, uri: string): ContentBlock {
  if (block.type === 'resource_link') return { ...block, uri }
  return block.type === 'resource' ? { ...block, resource: { ...block.resource, uri } } : block
}

// Extension keys in `_meta`. The gateway speaks these extensions with its clients itself, so what an upstream says about state, approvals,
// replays or permissions would be mistaken for the gateway's own statement. Only keys that describe the upstream's tools and results pass.
// An upstream's server info does not pass either.

/** Extension keys that may pass in results. */
const inResults: ReadonlySet<string> = new Set([
  operationalExtension,
  referencesExtension,
  mediaExtension,
  problemExtension,
  provenanceExtension,
  // At this point it is the gateway's own token, in which the upstream's token is sealed.
  stateExtension,
])
/** Extension keys that may pass in definitions. */
const inDefinitions: ReadonlySet<string> = new Set([operationalExtension, mediaExtension, streamingExtension])

/** The part of a definition's `_meta` that is shown to clients. */
export function definitionMeta(meta: unknown): Params | undefined {
  return withoutReservedMeta(meta, '', inDefinitions)
}

/** A result with filtered `_meta`. `gateway`: the gateway's own name. */
export function cleaned<R extends { readonly _meta?: Params | undefined }>(result: R, gateway: string): R {
  return result._meta === undefined ? result : withMeta(result, resultMeta(result._meta, gateway))
}

/** The part of a result's `_meta` that may pass. `gateway`: the gateway's own name. */
export function resultMeta(meta: unknown, gateway: string): Params | undefined {
  return withoutReservedMeta(meta, gateway, inResults)
}
