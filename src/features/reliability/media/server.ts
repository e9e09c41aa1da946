/**
 * Server side of media: the option `media` of tools, and the layers that check arguments and results. The inspection is loaded on first
 * use.
 */

import { isMimePattern } from '../../../core/artifact.ts'
import type { Trace } from '../../../core/log.ts'
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import { Problem } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature } from '../../../engine/server-feature.ts'
import type { Layer } from '../../../engine/stages.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { type CallToolResult, callTool, toolsPort } from '../../mcp/tools/messages.ts'
import { mediaExtension, mediaOf, type WireMedia, type WireWarning } from './messages.ts'

/** The server feature: the option `media` of tools. */
export const mediaFeature = defineServerFeature<object>({
  name: 'media',
  setup: kit => {
    const { trace, began } = kit
    const tools = kit.port(toolsPort)
    const { side, declare } = mediaServer({
      declares: tool => tools.facts<WithMedia>(tool)?.media !== undefined,
      tool: tool => {
        const entry = tools.catalog.get(tool)?.tool
        const said = mediaOf(entry?._meta)
        return entry === undefined || said === undefined ? undefined : { media: said, inputSchema: entry.inputSchema }
      },
      failed: tools.failed,
      trace,
      began,
    })
    tools.extend({ kinds: { media: 'object' }, declare: (_, facts: WithMedia) => declare(facts), meta: mediaMeta })
    return { sides: [side] }
  },
})

/** What a tool's media are checked against. */
interface MediaTool {
  readonly media: WireMedia
  readonly inputSchema: Params
}

interface MediaParts {
  /** Whether a tool declares media. Must be fast, because it runs for every call. */
  readonly declares: (tool: string) => boolean
  /** The declaration of a tool; undefined if it has none. */
  readonly tool: (name: string) => MediaTool | undefined
  /** Builds the result of a failed call. */
  readonly failed: (exchange: Exchange, problem: Problem) => CallToolResult
  readonly trace: Trace
  /** Called when the first tool declares media; until then the layers are skipped. */
  readonly began: () => void
}

interface MediaServer {
  readonly side: Side
  /** Called for each offered tool. */
  declare(facts: WithMedia): void
}

// Two layers: arguments are checked before validation, results after the handler.
function mediaServer(parts: MediaParts): MediaServer {
  let began = false
  const works = () => import('./runtime.ts')
  const toolOf = ({ params }: Exchange): MediaTool | undefined => parts.tool(params['name'] as string)
  const concerns = ({ params }: Exchange): boolean => parts.declares(params['name'] as string)
  const common = { methods: [callTool.name], concerns, when: (exchange: Exchange) => began && concerns(exchange) }
  const layers: readonly Layer[] = [
    {
      ...common,
      // Before validation, because a schema may decode the value.
      stage: 'unseal',
      run: async (exchange, next) => {
        const tool = toolOf(exchange)
        const { inspectArguments } = await works()
        if (tool !== undefined) inspectArguments(tool.media, tool.inputSchema, exchange.params['arguments'] as Params | undefined)
        return next()
      },
    },
    {
      ...common,
      stage: 'execute',
      run: async (exchange, next) => {
        const tool = toolOf(exchange)
        const result = await next()
        const { inspectContent } = await works()
        return tool === undefined ? result : judged(parts, exchange, result, content => inspectContent(tool.media, content))
      },
    },
  ]
  return {
    declare: ({ media }) => {
      if (began || media === undefined) return
      began = true
      parts.began()
    },
    side: {
      // Always installed: a call may already be on its way under the old plan.
      layers,
      capabilities: revision => (began ? declaration(revision, mediaExtension) : {}),
    },
  }
}

type Inspect = (content: CallToolResult['content']) => readonly WireWarning[]

/** Adds warnings to a result, or replaces it by a failure. Returned and not thrown, because the tool has run. */
function judged(parts: MediaParts, exchange: Exchange, result: unknown, inspect: Inspect): unknown {
  if (!isCallResult(result) || result.isError === true) return result
  const tool = exchange.params['name']
  try {
    const warnings = inspect(result.content)
    if (warnings.length === 0) return result
    parts.trace('media-unlisted', { tool, warnings })
    if (declared(exchange.peer, mediaExtension) === undefined) return result
    return { ...result, _meta: { ...result._meta, [mediaExtension]: { warnings } } }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    parts.trace('media-refused', { tool, error })
    return parts.failed(exchange, error)
  }
}

function isCallResult(result: unknown): result is CallToolResult {
  return isRecord(result) && Array.isArray(result['content'])
}

// What an author declares about media.

interface MediaFacts {
  /** Types of arguments, such as `image/*`. A hint, unless `strict`. */
  readonly input?: readonly string[]
  /** Types of results. Others are returned with a warning, unless `strict`. */
  readonly output?: readonly string[]
  /** Limit of all media in the arguments, in decoded bytes. */
  readonly maxInputBytes?: number
  /** The same for results. */
  readonly maxOutputBytes?: number
  /** Whether other types are refused. Default false. */
  readonly strict?: boolean
  /** How bytes are transferred: in the message (`base64`, default), or by reference. */
  readonly transport?: 'base64' | 'reference'
}

/** The option of a tool. */
export interface WithMedia {
  /** The media that the tool accepts and returns; checked in both directions before anything is decoded. */
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
function mediaMeta(tool: string, { media }: WithMedia): Readonly<Record<string, WireMedia>> | undefined {
  if (media === undefined) return undefined
  const where = `The media of tool "${clip(tool)}"`
  checkOptions(where, media, kinds)
  const { input, output, maxInputBytes, maxOutputBytes, strict, transport } = media
  for (const type of [...(input ?? []), ...(output ?? [])])
    if (typeof type !== 'string' || !isMimePattern(type))
      throw new TypeError(`${where}: "${clip(String(type))}" is no media type; write type/subtype, or image/*`)
  for (const bytes of [maxInputBytes, maxOutputBytes])
    if (bytes !== undefined && !Number.isSafeInteger(bytes)) throw new TypeError(`${where}: a size is a whole number of bytes`)
  if (transport !== undefined && transport !== 'base64' && transport !== 'reference')
    throw new TypeError(`${where}: transport is "${clip(transport)}"; give 'base64' or 'reference'`)
  const said: WireMedia = {
    ...(input === undefined ? {} : { input_types: input }),
    ...(output === undefined ? {} : { output_types: output }),
    ...(maxInputBytes === undefined ? {} : { max_input_size_bytes: maxInputBytes }),
    ...(maxOutputBytes === undefined ? {} : { max_output_size_bytes: maxOutputBytes }),
    ...(strict === undefined ? {} : { strict }),
    ...(transport === undefined ? {} : { binary_transport: transport }),
  }
  return { [mediaExtension]: said }
}
