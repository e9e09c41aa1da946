/**
 * Server side of media: the option `media` of tools, and the layers that check arguments and results. The inspection is loaded on first
 * use.
 */

import { isMimePattern } from '../../../core/artifact.ts'
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import { Problem } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaredSettings, extensionCapability } from '../../../engine/extensions.ts'
import { defineServerFeature, type ServerKit } from '../../../engine/server-feature.ts'
import type { Layer } from '../../../engine/stages.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { given, isRecord, type Params } from '../../../jsonrpc/message.ts'
import { type CallToolResult, callTool, toolsPort } from '../../mcp/tools/messages.ts'
import { mediaExtension, mediaOf, type WireMedia, type WireWarning } from './messages.ts'

const loadRuntime = () => import('./runtime.ts')

/** The server feature: the option `media` of tools. Two layers: arguments are checked before validation, results after the handler. */
export const mediaFeature = defineServerFeature<object>({
  name: 'media',
  setup: kit => {
    const tools = kit.port(toolsPort)
    let began = false
    const nameOf = ({ params }: Exchange): string => params['name'] as string
    // Must be fast, because it runs for every call.
    const concerns = (exchange: Exchange): boolean => tools.facts<MediaToolOption>(nameOf(exchange))?.media !== undefined
    const common = { methods: [callTool.name], concerns, when: (exchange: Exchange) => began && concerns(exchange) }
    const inputs: Layer = {
      ...common,
      // Before validation, because a schema may decode the value.
      stage: 'unseal',
      run: async (exchange, next) => {
        const tool = tools.catalog.get(nameOf(exchange))?.tool
        const media = mediaOf(tool?._meta)
        const { inspectArguments } = await loadRuntime()
        if (tool !== undefined && media !== undefined)
          inspectArguments(media, tool.inputSchema, exchange.params['arguments'] as Params | undefined)
        return next()
      },
    }
    const outputs: Layer = {
      ...common,
      stage: 'execute',
      run: async (exchange, next) => {
        const media = mediaOf(tools.catalog.get(nameOf(exchange))?.tool._meta)
        const result = await next()
        const { inspectContent } = await loadRuntime()
        return media === undefined ? result : judged(kit, exchange, result, content => inspectContent(media, content))
      },
    }
    tools.extend({
      kinds: { media: 'object' },
      declare: (_, { media }: MediaToolOption) => {
        if (began || media === undefined) return
        began = true
        // Until then the layers are skipped.
        kit.began()
      },
      meta: mediaMeta,
    })
    // Always installed: a call may already be on its way under the old plan.
    const layers = [inputs, outputs]
    return { sides: [{ layers, capabilities: revision => (began ? extensionCapability(revision, mediaExtension) : {}) }] }
  },
})

type Inspect = (content: CallToolResult['content']) => readonly WireWarning[]

/** Adds warnings to a result, or replaces it by a failure. Returned and not thrown, because the tool has run. */
function judged({ trace, port }: ServerKit, exchange: Exchange, result: unknown, inspect: Inspect): unknown {
  if (!isCallResult(result) || result.isError === true) return result
  const tool = exchange.params['name']
  try {
    const warnings = inspect(result.content)
    if (warnings.length === 0) return result
    trace('media-unlisted', { tool, warnings })
    if (declaredSettings(exchange.peer, mediaExtension) === undefined) return result
    return { ...result, _meta: { ...result._meta, [mediaExtension]: { warnings } } }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    trace('media-refused', { tool, error })
    return port(toolsPort).failed(exchange, error)
  }
}

function isCallResult(result: unknown): result is CallToolResult {
  return isRecord(result) && Array.isArray(result['content'])
}

// What an author declares about media.

/** The media types and sizes of a tool. */
interface MediaFacts {
  /** Media types of arguments, such as `image/*`. Others are accepted unless `strict`. Default: any. */
  readonly input?: readonly string[]
  /** Media types of results. Others are returned with a warning, unless `strict`. Default: any. */
  readonly output?: readonly string[]
  /** The most decoded bytes of all media in the arguments. Default: no limit. */
  readonly maxInputBytes?: number
  /** The most decoded bytes of all media in the result. Default: no limit. */
  readonly maxOutputBytes?: number
  /** Whether other types are refused. Default false. */
  readonly strict?: boolean
  /** How bytes are transferred: in the message (`base64`), or by reference. Default `base64`. */
  readonly transport?: 'base64' | 'reference'
}

/** The option of a tool. */
export interface MediaToolOption {
  /** The media that the tool accepts and returns. It is checked in both directions before anything is decoded. Default: not checked. */
  readonly media?: MediaFacts
}

const kinds: KindsOf<MediaFacts> = {
  input: 'list',
  output: 'list',
  maxInputBytes: 'number',
  maxOutputBytes: 'number',
  strict: 'boolean',
  transport: 'string',
}

/** The `_meta` of the tool. Throws if the declaration is invalid. */
function mediaMeta(tool: string, { media }: MediaToolOption): Readonly<Record<string, WireMedia>> | undefined {
  if (media === undefined) return undefined
  const where = `The media of tool "${clip(tool)}"`
  checkOptions(where, media, kinds)
  const { input, output, maxInputBytes, maxOutputBytes, strict, transport } = media
  for (const type of [...(input ?? []), ...(output ?? [])])
    if (typeof type !== 'string' || !isMimePattern(type))
      throw new TypeError(`${where}: "${clip(String(type))}" is not a media type. Write type/subtype, or image/*`)
  for (const bytes of [maxInputBytes, maxOutputBytes])
    if (bytes !== undefined && !Number.isSafeInteger(bytes))
      throw new TypeError(`${where}: a size must be a whole number of bytes`)
  if (transport !== undefined && transport !== 'base64' && transport !== 'reference')
    throw new TypeError(`${where}: transport is "${clip(transport)}"; give 'base64' or 'reference'`)
  const said: WireMedia = given({
    input_types: input,
    output_types: output,
    max_input_size_bytes: maxInputBytes,
    max_output_size_bytes: maxOutputBytes,
    strict,
    binary_transport: transport,
  })
  return { [mediaExtension]: said }
}
