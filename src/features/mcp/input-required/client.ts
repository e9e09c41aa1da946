/** Answering results that ask: each question goes to the handler that would have got the request, then the call is made again. */
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { type InputRequest, isInputRequired } from './messages.ts'

export type Answerers = ReadonlyMap<string, (params: Params, signal: AbortSignal) => Promise<unknown>>

export interface DriveOptions {
  readonly answerers: Answerers
  readonly rounds: number
  readonly signal: AbortSignal
}

/** Makes the call until it comes to an end. Each try is a new request; the state goes back exactly as it came, or not at all. */
export async function drive(params: Params, send: (params: Params) => Promise<unknown>, options: DriveOptions): Promise<unknown> {
  let current = params
  for (let round = 0; round <= options.rounds; round++) {
    const result = await send(current)
    if (!isInputRequired(result)) return known(result)
    const { inputRequests, requestState } = result
    current = {
      ...params,
      ...(isRecord(inputRequests)
        ? { inputResponses: await answers(inputRequests as Readonly<Record<string, InputRequest>>, options) }
        : {}),
      ...(requestState === undefined ? {} : { requestState }),
    }
  }
  throw new McpError('too-many-rounds', `The server asked more than ${options.rounds} times without coming to an end`)
}

async function answers(
  requests: Readonly<Record<string, InputRequest>>,
  options: DriveOptions,
): Promise<Record<string, unknown>> {
  const entries = Object.entries(requests)
  if (entries.length > 32)
    throw new McpError('invalid-result', `The server asks ${entries.length} questions at once; the limit is 32`)
  return Object.fromEntries(
    await Promise.all(entries.map(async ([key, request]) => [key, await answer(request, options)] as const)),
  )
}

/** Answers one question by the handler that would have got the request. */
export function answer(request: InputRequest, options: Pick<DriveOptions, 'answerers' | 'signal'>): Promise<unknown> {
  const answerer = options.answerers.get(request?.method)
  if (answerer === undefined) {
    return Promise.reject(
      new McpError('method-not-found', `The server asks for ${clip(String(request?.method))}, which this client does not answer`),
    )
  }
  return answerer(isRecord(request.params) ? request.params : {}, options.signal)
}

/** An absent kind means complete: older servers do not know the member. */
function known(result: unknown): unknown {
  const kind = isRecord(result) ? result['resultType'] : undefined
  if (kind === undefined || kind === 'complete' || kind === 'task') return result
  throw new McpError('invalid-result', `The server answered with a result of unknown kind "${clip(String(kind))}"`)
}
