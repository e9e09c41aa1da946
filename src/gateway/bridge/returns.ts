/** What an upstream answered, as clients of the gateway read it: with addresses that hold here, and without what only those read who declared it. */
import { declared } from '../../engine/extensions.ts'
import { NS } from '../../engine/method.ts'
import { authored, keptOf } from '../../engine/reserved.ts'
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

/** What the caller is told of addresses in what an upstream answers. */
export interface Told {
  /** Under which address it reads what the upstream calls so. */
  address(uri: string): string
  /** Whether it may read that at all. */
  readable(uri: string): boolean
}

/** So many addresses of one result are looked at. */
const mostAddresses = 1_000

/** The most common result has nothing of it, and is given back as it is. */
export function returned(result: CallToolResult, told: Told): CallToolResult {
  const content = Array.isArray(result.content) ? readdressed(result.content, told) : result.content
  return content === result.content ? result : { ...result, content }
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

/** The `_meta` of a result without extensions of ours that this peer did not declare. */
export function plainMeta(peer: Peer, meta: Params | undefined): Params | undefined {
  return meta && keptOf(meta, key => !key.startsWith(own) || declared(peer, key) !== undefined)
}

function withMeta<T extends { readonly _meta?: Params }>(value: T, meta: Params | undefined): T {
  if (meta === value._meta) return value
  const { _meta, ...rest } = value
  return { ...rest, ...(meta !== undefined && { _meta: meta }) } as T
}

/** Messages of a prompt with the addresses that the caller uses here. */
export function returnedMessages(messages: readonly PromptMessage[], told: Told): readonly PromptMessage[] {
  const contents = messages.map(({ content }) => content)
  const made = readdressed(contents, told)
  return made === contents ? messages : messages.map((message, i) => ({ ...message, content: made[i] ?? message.content }))
}

/** The same list where no block of it has an address that is another one here, or that the caller may not read. */
function readdressed(content: readonly ContentBlock[], told: Told): readonly ContentBlock[] {
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

/** What the caller may not read is replaced by a text that says so. */
function shownBlock(block: ContentBlock, uri: string, { address, readable }: Told, asItIs: boolean): ContentBlock {
  if (!readable(uri)) return { type: 'text', text: withheld }
  const shown = asItIs ? uri : address(uri)
  return shown === uri ? block : withUri(block, shown)
}

/** In the place of a resource, or of a link to one. */
const withheld = 'The gateway left out a resource here that you may not read.'

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

// What servers say under our own names. The gateway speaks these extensions with its clients itself: what a server says of a state, an
// approval, a replay or a right would be taken for the gateway's word, and lead a client to do what nobody asked for. What says only
// something of the server's own tools and results goes on, and never in the gateway's name. Neither does a server name itself where the
// gateway answers.

type Meta = Readonly<Record<string, unknown>>

const inResults: ReadonlySet<string> = new Set([
  operationalExtension,
  referencesExtension,
  mediaExtension,
  problemExtension,
  provenanceExtension,
  // By then it is the gateway's own token, in which that of the server is sealed.
  stateExtension,
])
const inDefinitions: ReadonlySet<string> = new Set([operationalExtension, mediaExtension, streamingExtension])

/** The `_meta` of a definition, as it is shown. */
export function definitionMeta(meta: unknown): Meta | undefined {
  return authored(meta, '', inDefinitions)
}

/** The same result, with as much of its `_meta` as goes on. `gateway`: how that names itself. */
export function cleaned<R extends { readonly _meta?: Meta | undefined }>(result: R, gateway: string): R {
  if (result._meta === undefined) return result
  const meta = resultMeta(result._meta, gateway)
  if (meta === result._meta) return result
  const { _meta, ...rest } = result
  return (meta === undefined ? rest : { ...rest, _meta: meta }) as R
}

/** As much of the `_meta` of a result as may go on to clients. `gateway`: how the gateway names itself. */
export function resultMeta(meta: unknown, gateway: string): Meta | undefined {
  return authored(meta, gateway, inResults)
}
