/**
 * Adapter for the AI SDK: anything that the package `ai` can stream from becomes a Model. The package is an optional peer dependency,
 * imported only here and loaded on first use.
 */
import type { LanguageModel, ModelMessage as SdkMessage, ToolSet } from 'ai'
import { Problem, type ProblemCode, problem } from '../../core/problem.ts'
import type { LiveBlock } from '../../features/live/content/messages.ts'
import type { ModelInfo } from '../../features/live/model-info/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord, picked } from '../../jsonrpc/message.ts'
import {
  estimateTokens,
  type Model,
  type ModelFinish,
  type ModelMessage,
  type ModelPart,
  type ModelPrice,
  type ModelRequest,
  type ModelToolResult,
  type ModelTraits,
  requestTokens,
  textIn,
} from './model.ts'

/** Options of a model of the AI SDK. */
export interface AiModelOptions {
  /** Default: the id that the language model reports. */
  readonly id?: string
  /** The vendor, as servers see it. Default: as the language model reports. */
  readonly vendor?: string
  /** Context window in tokens. Default 128,000. */
  readonly contextWindow?: number
  /** Capabilities, as servers see them. Default: tools. */
  readonly capabilities?: readonly string[]
  /** Its strengths, by which servers can choose between several models. Default: unknown. */
  readonly traits?: ModelTraits
  /** The price per million tokens, so that turns and budgets count money. Default: unknown. */
  readonly price?: ModelPrice
}

type Sdk = typeof import('ai')

/** The part of an AI SDK language model that identifies it. Its own types are not named, so that ours do not depend on the package. */
interface AiLanguageModel {
  /** The version of the interface of the AI SDK. */
  readonly specificationVersion: string
  /** The name of the provider. */
  readonly provider: string
  /** The id of the model. */
  readonly modelId: string
  /** Streams an answer. */
  doStream(options: never): PromiseLike<unknown>
}

/** A model, its name, or a function that loads it on first use. */
type AiLanguage = string | AiLanguageModel | (() => Promise<string | AiLanguageModel>)

/**
 * Adapts a language model of the AI SDK (package `ai`), so that a host can use any provider that the AI SDK supports.
 * @example const host = await createHost({ servers, model: aiModel(createAnthropic()('claude-sonnet-5')) })
 */
export function aiModel(language: AiLanguage, options: AiModelOptions = {}): Model {
  const info = infoOf(language, options)
  return {
    info,
    ...picked(options, 'traits', 'price'),
    async *generate(request, { signal }) {
      signal.throwIfAborted()
      const sdk = await load(info.vendor)
      const model = typeof language === 'function' ? await language() : language
      try {
        // The SDK itself checks the specification version of the model.
        yield* stream(sdk, model as LanguageModel, request, signal)
      } catch (error) {
        signal.throwIfAborted()
        throw providerProblem(error, info)
      }
    },
  }
}

/** Loads the SDK; the error names the provider package too, because both are needed. */
async function load(vendor: string): Promise<Sdk> {
  try {
    return await import('ai')
  } catch (cause) {
    const provider = /^[a-z][a-z-]*$/.test(vendor) && vendor !== 'unknown' ? vendor : 'PROVIDER'
    const suggestion = `Install it: npm install ai @ai-sdk/${provider}`
    throw problem('UNSUPPORTED', 'The package ai is not installed', { suggestion, actor: 'operator', cause })
  }
}

/** What the model says of itself, with defaults. */
function infoOf(language: AiLanguage, options: AiModelOptions): ModelInfo {
  const told = typeof language === 'object' ? language : undefined
  const named = typeof language === 'string' ? language : undefined
  return {
    id: options.id ?? told?.modelId ?? named ?? 'unknown',
    // Providers are named like `anthropic.messages`.
    vendor: options.vendor ?? told?.provider.split('.')[0] ?? named?.split('/')[0] ?? 'unknown',
    contextWindow: options.contextWindow ?? 128_000,
    capabilities: options.capabilities ?? ['tools'],
  }
}

/** Streams one answer as model parts. */
async function* stream(sdk: Sdk, model: LanguageModel, request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelPart> {
  const { system, maxTokens, temperature, stop } = request
  const instructions = textIn(system)
  const result = sdk.streamText({
    model,
    ...(instructions !== '' && { instructions }),
    messages: sdkMessages(request.messages),
    tools: sdkTools(sdk, request),
    ...(maxTokens !== undefined && { maxOutputTokens: maxTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(stop !== undefined && { stopSequences: [...stop] }),
    abortSignal: signal,
    // Retries are up to the caller, and errors arrive as parts of the stream.
    maxRetries: 0,
    onError: () => {},
  })
  let text = ''
  for await (const part of result.fullStream) {
    if (part.type === 'text-delta') {
      text += part.text
      yield { type: 'text', delta: part.text }
    } else if (part.type === 'tool-call') yield toolUse(part.toolCallId, part.toolName, part.input)
    else if (part.type === 'error') throw part.error
    else if (part.type === 'abort') signal.throwIfAborted()
    else if (part.type === 'finish-step') yield endOf(part, request, text)
  }
}

/** A tool call; throws where its arguments are no object. */
function toolUse(id: string, name: string, input: unknown): ModelPart {
  if (isRecord(input)) return { type: 'tool_use', id, name, arguments: input }
  throw brokeOff('The model wrote tool arguments that are not a JSON object')
}

function brokeOff(message: string): Problem {
  return problem('MODEL_BROKE_OFF', message, { category: 'transient', suggestion: 'Try again' })
}

interface StepEnd {
  readonly finishReason: string
  readonly usage: { readonly inputTokens: number | undefined; readonly outputTokens: number | undefined }
  readonly response: { readonly modelId: string }
}

/** Finish reasons of the SDK; others end the turn. */
const finishes = new Map<string, ModelFinish>([
  ['length', 'max_tokens'],
  ['tool-calls', 'tool_use'],
])

/** The end of an answer. Where a provider reports no usage, an estimate is used. */
function endOf({ finishReason, usage, response }: StepEnd, request: ModelRequest, text: string): ModelPart {
  if (finishReason === 'interrupted' || finishReason === 'error')
    throw brokeOff('The provider ended its response before it was complete')
  return {
    type: 'end',
    finishReason: finishes.get(finishReason) ?? 'end_turn',
    usage: { inputTokens: usage.inputTokens ?? requestTokens(request), outputTokens: usage.outputTokens ?? estimateTokens(text) },
    model: response.modelId,
  }
}

/** The tools in the SDK's form, without execute functions: the host makes the calls. */
function sdkTools(sdk: Sdk, { tools }: ModelRequest): ToolSet {
  return Object.fromEntries(
    tools.map(({ name, description, inputSchema }) => [
      name,
      { inputSchema: sdk.jsonSchema(inputSchema), ...(description !== undefined && { description }) },
    ]),
  )
}

/** The messages in the SDK's form. Its results name their tool, which is found by the call's id. */
function sdkMessages(messages: readonly ModelMessage[]): SdkMessage[] {
  const names = new Map<string, string>()
  return messages.map((message): SdkMessage => {
    if (message.role === 'user') return { role: 'user', content: message.content.map(block => userPart(block)) }
    if (message.role === 'tool')
      return { role: 'tool', content: message.results.map(result => resultPart(result, names.get(result.id) ?? 'unknown')) }
    const content = message.content.map(block => {
      if (block.type !== 'tool_use') return { type: 'text' as const, text: textOf(block) }
      names.set(block.id, block.name)
      return { type: 'tool-call' as const, toolCallId: block.id, toolName: block.name, input: block.arguments }
    })
    return { role: 'assistant', content }
  })
}

/** A block of a user message. */
function userPart(block: LiveBlock) {
  if (block.type === 'image' || block.type === 'audio')
    return { type: 'file' as const, data: block.data, mediaType: block.mimeType }
  return { type: 'text' as const, text: textOf(block) }
}

/** A tool result; images only where there are some. */
function resultPart({ id, content, isError }: ModelToolResult, toolName: string) {
  const common = { type: 'tool-result' as const, toolCallId: id, toolName }
  const text = content.map(block => textOf(block)).join('\n')
  if (isError) return { ...common, output: { type: 'error-text' as const, value: text } }
  if (!content.some(({ type }) => type === 'image')) return { ...common, output: { type: 'text' as const, value: text } }
  const value = content.map(block =>
    block.type === 'image'
      ? { type: 'file' as const, data: { type: 'data' as const, data: block.data }, mediaType: block.mimeType }
      : { type: 'text' as const, text: textOf(block) },
  )
  return { ...common, output: { type: 'content' as const, value } }
}

/** A block as text. */
function textOf(block: LiveBlock): string {
  if (block.type === 'text') return block.text
  if (block.type === 'resource_link') return block.name === undefined ? block.uri : `${block.name}: ${block.uri}`
  return `[${block.type}, ${block.mimeType}]`
}

// Failures of providers: whether waiting helps, how long, and who can act.

/** What an HTTP status means. */
const statuses = new Map<number, { readonly code: ProblemCode; readonly fix: string }>([
  [400, { code: 'INVALID_INPUT', fix: 'Correct the request according to the error of the provider' }],
  [401, { code: 'AUTHENTICATION_REQUIRED', fix: 'Set a valid API key' }],
  [403, { code: 'PERMISSION_DENIED', fix: 'Use an API key that has access to this model' }],
  [404, { code: 'RESOURCE_NOT_FOUND', fix: 'Use a model that the provider offers' }],
  [413, { code: 'PAYLOAD_TOO_LARGE', fix: 'Send a shorter request' }],
  [429, { code: 'RATE_LIMIT_EXCEEDED', fix: 'Wait, or raise the limit at the provider' }],
])

/** A provider's error as a problem. Errors without a status come from the network. */
function providerProblem(error: unknown, { vendor, id }: Pick<ModelInfo, 'vendor' | 'id'>): Problem {
  if (error instanceof Problem) return error
  const status = isErrorWith(error) ? error.statusCode : undefined
  const known = status === undefined ? undefined : statuses.get(status)
  const said = clip(error instanceof Error ? error.message : String(error), 200)
  const wait = isErrorWith(error) && isRecord(error.responseHeaders) ? waitIn(error.responseHeaders) : undefined
  const busy = status === undefined || status >= 500
  return problem(
    known?.code ?? (busy ? 'SERVER_UNAVAILABLE' : 'SERVER_ERROR'),
    `${vendor} (${id}) ${status === undefined ? 'sent no response' : `answered with HTTP ${status}`}: ${said}`,
    {
      suggestion: known?.fix ?? (busy ? 'Retry in a few seconds, or use another model' : 'Check the error of the provider'),
      actor: known?.code === 'AUTHENTICATION_REQUIRED' || known?.code === 'PERMISSION_DENIED' ? 'operator' : undefined,
      retryAfter: wait,
      details: { ...(status !== undefined && { status }) },
      cause: error,
    },
  )
}

/** Whether an error may carry a status and headers. */
function isErrorWith(error: unknown): error is Error & { statusCode?: number; responseHeaders?: unknown } {
  return error instanceof Error && (!('statusCode' in error) || typeof error.statusCode === 'number')
}

/** The wait that headers ask for: in milliseconds, seconds or as a date. */
function waitIn(headers: Readonly<Record<string, unknown>>): number | undefined {
  const exact = Number(headers['retry-after-ms'] ?? Number.NaN)
  if (exact >= 0) return exact
  const header = headers['retry-after']
  if (typeof header !== 'string') return undefined
  if (/^\d{1,9}(\.\d{1,3})?$/.test(header.trim())) return Number(header) * 1000
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now())
}
