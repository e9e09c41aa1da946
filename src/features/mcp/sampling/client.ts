/** The client's side of sampling: the server's messages go to the host's model. */
import { answerOf, byHandler } from '../../../engine/asking.ts'
import { defineClientFeature, extend, type RequestRate } from '../../../engine/client-feature.ts'
import type { Side } from '../../../engine/plan.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { type Awaitable, isRecord, type Params } from '../../../jsonrpc/message.ts'
import type { Revision } from '../../../revisions/index.ts'
import { questionHandlers } from '../input-required/messages.ts'
import {
  createMessage,
  declaresSamplingDetails,
  type SamplingMessage,
  type SamplingParams,
  type SamplingResult,
} from './messages.ts'

/** Asks the model on behalf of the server, and returns its answer. */
export type OnSample = (
  params: SamplingParams,
  context: {
    /** Aborted when the server cancels the request. */
    readonly signal: AbortSignal
  },
) => Awaitable<SamplingResult>

/** `thisServer`: the conversation with the server that asks. `allServers`: also those with others. */
type SampleContext = 'thisServer' | 'allServers'

/** Options of `connect` for sampling. */
export interface SamplingOptions {
  /** Answers sampling requests of the server. If set, the client declares `sampling`; without it servers cannot ask. */
  readonly onSample?: OnSample
  /** Whether sampling requests may bring tools for the model. Default false. */
  readonly sampleTools?: boolean
  /** Whose conversations the server may ask to include; `onSample` includes them. Default: none. */
  readonly sampleContext?: SampleContext
}

interface SamplingSideOptions {
  readonly onSample: OnSample | undefined
  /** Whether the host's model can be given tools. */
  readonly tools: boolean
  /** Which conversations a server may have put before its messages. */
  readonly context: SampleContext | undefined
  /** Throws a refusal when the server asks too often. */
  readonly admit: () => void
}

interface SamplingLimits {
  readonly limits?: { readonly rates?: { readonly sample?: RequestRate | false } }
}

/** Answers the server's questions to a model. */
export const samplingClient = defineClientFeature<SamplingOptions, unknown, SamplingOptions & SamplingLimits>({
  name: 'sampling',
  options: { onSample: 'function', sampleTools: 'boolean', sampleContext: 'string' },
  setup(kit, { onSample, sampleTools = false, sampleContext, limits }) {
    const admit = kit.admission('sampling requests', limits?.rates?.sample ?? { perSecond: 1, burst: 20 })
    const { side, answer } = samplingSide({ onSample, tools: sampleTools, context: sampleContext, admit })
    return { side, extensions: [extend(questionHandlers, { method: createMessage, answer })] }
  },
})

/** What answers such questions, and what declares it. */
export function samplingSide(options: SamplingSideOptions) {
  const { onSample } = options
  const answer = async (params: Params, signal: AbortSignal): Promise<SamplingResult> => {
    if (onSample === undefined) throw new McpError('method-not-found', 'This client does not support sampling')
    options.admit()
    if ((params['tools'] !== undefined || params['toolChoice'] !== undefined) && !options.tools) {
      throw new McpError('invalid-params', 'This client did not declare sampling.tools')
    }
    const asked = withinContext(params as unknown as SamplingParams, options.context)
    checkToolResults(asked.messages)
    return answerOf('onSample', await onSample(asked, { signal }), isSamplingResult, '{ role, content, model }')
  }
  const offered = (): boolean => onSample !== undefined
  const side: Side = {
    handlers: [[createMessage, { offered, execute: byHandler('onSample', answer) }]],
    capabilities: revision => (onSample === undefined ? {} : { sampling: declared(revision, options) }),
    errors: { 'sampling-refused': { default: -1 } },
  }
  return { side, answer }
}

function declared(revision: Revision, { tools, context }: SamplingSideOptions): Record<string, unknown> {
  if (!declaresSamplingDetails(revision)) return {}
  return { ...(tools && { tools: {} }), ...(context !== undefined && { context: {} }) }
}

/** What other servers said is nobody's to ask for unasked. One's own context is only a wish, which the protocol lets be ignored. */
function withinContext(asked: SamplingParams, granted: SampleContext | undefined): SamplingParams {
  const { includeContext = 'none', ...rest } = asked
  if (includeContext === 'none' || includeContext === granted || granted === 'allServers') return asked
  if (includeContext === 'thisServer') return rest
  throw new McpError('invalid-params', 'This client does not share the context of other servers (its option sampleContext)')
}

type Block = { readonly type?: unknown; readonly id?: unknown; readonly toolUseId?: unknown }

/** Every tool use is answered in the very next message, and a message with results holds nothing else. */
function checkToolResults(messages: readonly SamplingMessage[]): void {
  let open: readonly unknown[] = []
  for (const message of messages) {
    const blocks = (Array.isArray(message.content) ? message.content : [message.content]).filter(isRecord) as readonly Block[]
    const results = blocks.filter(block => block.type === 'tool_result')
    if (results.length > 0 && results.length < blocks.length) {
      throw new McpError('invalid-params', 'A message with tool results must not contain anything else')
    }
    const answered = new Set(results.map(block => block.toolUseId))
    if (open.some(id => !answered.has(id)) || results.length !== open.length) {
      throw new McpError('invalid-params', 'Every tool use needs a tool result in the next message')
    }
    open = blocks.filter(block => block.type === 'tool_use').map(block => block.id)
  }
}

/** Whether a value is a result of `sampling/createMessage`. */
function isSamplingResult(value: unknown): value is SamplingResult {
  if (!isRecord(value)) return false
  const { role, content, model } = value
  return typeof role === 'string' && typeof model === 'string' && (isRecord(content) || Array.isArray(content))
}
