/** Answering results that ask: each question goes to the handler that would have got the request, then the call is made again. */
import { unlessAborted } from '../../../core/deadlines.ts'
import { defineClientFeature } from '../../../engine/client-feature.ts'
import type { Method } from '../../../engine/method.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip, echo } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import {
  type ClientQuestions,
  type InputRequest,
  type InputRequiredResult,
  isInputRequired,
  questionHandlers,
  questionsPort,
} from './messages.ts'

type Answerer = (params: Params, signal: AbortSignal) => Promise<unknown>
type Answerers = ReadonlyMap<string, Answerer>

interface DriveOptions {
  readonly answerers: Answerers
  readonly rounds: number
  readonly signal?: AbortSignal | undefined
  /** Kinds of result that an extension adds. */
  readonly kinds?: readonly string[]
}

const maxQuestions = 32
/** How often one call may be answered with questions. */
const rounds = 10

/** Answers what results ask, by the handlers that other features bring. */
export const inputRequiredClient = defineClientFeature<object, ClientQuestions>({
  name: 'input-required',
  provides: questionsPort,
  options: {},
  setup(kit) {
    let known: Answerers | undefined
    const answerers = (): Answerers => {
      known ??= new Map(kit.extensions(questionHandlers).map(({ method, answer }) => answerer(method, answer)))
      return known
    }
    const driven: ClientQuestions['drive'] = (first, again, options) =>
      drive(first, again, { ...options, rounds, answerers: answerers() })
    return {
      port: {
        isFinal: isFinalResult,
        drive: driven,
        settle: async (first, again, { signal }) =>
          isFinalResult(first) || kit.session.opened.revision.asks !== 'result' ? first : driven(first, again, { signal }),
        answer: (request, signal) => answer(request, { answerers: answerers(), signal }),
      },
    }
  },
})

/** An entry of the table of those who answer: questions inside results are checked like requests. */
function answerer(method: Method, answer: Answerer): [string, Answerer] {
  return [
    method.name,
    async (params, signal) => {
      const fault = method.params.check(params)
      if (fault === undefined) return answer(params, signal)
      const where = fault.path === '' ? 'params' : `params.${clip(fault.path)}`
      throw new McpError('invalid-result', `The server asks ${method.name}, but its ${where} must be ${fault.expected}`)
    },
  ]
}

/** Whether a result is what its call was made for. An absent kind means that too: older servers do not know the member. */
export function isFinalResult(result: unknown): boolean {
  const kind = isRecord(result) ? result['resultType'] : undefined
  return kind === undefined || kind === 'complete'
}

/**
 * Answers and asks `again` until the call comes to an end. Each try is a new request that carries the answers to the last
 * questions only; the state goes back exactly as it came, or not at all.
 */
async function drive(first: unknown, again: (more: Params) => Promise<unknown>, options: DriveOptions): Promise<unknown> {
  let result = first
  for (let round = 0; isInputRequired(result); round++) {
    if (round === options.rounds) {
      throw new McpError('too-many-rounds', `The server asked for input ${round + 1} times in one call; the limit is ${round}`)
    }
    result = await again(await replyTo(result, options))
  }
  if (isFinalResult(result)) return result
  const kind = (result as Params)['resultType']
  if (typeof kind === 'string' && options.kinds?.includes(kind)) return result
  throw new McpError('invalid-result', `The result of the server has the unknown type "${echo(kind)}"`)
}

async function replyTo({ inputRequests, requestState }: InputRequiredResult, options: DriveOptions): Promise<Params> {
  if (inputRequests === undefined && requestState === undefined) {
    throw new McpError('invalid-result', 'The server requires input, but sent neither a question nor a state')
  }
  if (requestState !== undefined && typeof requestState !== 'string') {
    throw new McpError('invalid-result', "The server's requestState is not a string")
  }
  const state = requestState === undefined ? {} : { requestState }
  return inputRequests === undefined ? state : { inputResponses: await answers(inputRequests, options), ...state }
}

/** All at once; when one cannot be answered the others are put away, for the call will not be made again. */
async function answers(requests: unknown, { answerers, signal }: DriveOptions): Promise<Params> {
  if (!isRecord(requests)) throw new McpError('invalid-result', "The server's inputRequests are not an object")
  const entries = Object.entries(requests)
  if (entries.length > maxQuestions) {
    throw new McpError('invalid-result', `The server asks ${entries.length} questions at once; the limit is ${maxQuestions}`)
  }
  const stop = new AbortController()
  const either = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal])
  const asked = entries.map(async ([key, request]) => [key, await answer(request, { answerers, signal: either })] as const)
  try {
    return Object.fromEntries(await unlessAborted(Promise.all(asked), signal))
  } catch (error) {
    stop.abort(error)
    throw error
  }
}

/** Answers one question by the handler that would have got the request. */
async function answer(request: unknown, { answerers, signal }: { answerers: Answerers; signal: AbortSignal }): Promise<unknown> {
  const { method, params } = (isRecord(request) ? request : {}) as Partial<InputRequest>
  const answerer = answerers.get(method as string)
  if (answerer === undefined) {
    throw new McpError('method-not-found', `The server sent ${echo(method)}, which this client does not support`)
  }
  return answerer(isRecord(params) ? params : {}, signal)
}
