/** Requests with what extensions put into `_meta`, their answers taken apart, and the checks that tables hold against answers. */
import { isRecord } from '../jsonrpc/message.ts'
import { type Expectation, fitsPattern, is, type JsonPattern, objectIn } from './expectations.ts'
import { extensionId } from './said.ts'
import type { Bench, Carrier, Frame, Json, OpenOptions } from './scenario.ts'
import type { FoundTool } from './tools.ts'
import { type Answer, letGo, type RawPeer, type RequestOptions } from './wire/raw-peer.ts'

/** An answer, taken apart. */
export type PeerAnswer = ReturnType<typeof taken>

/** What a request says under extensions, by their short names. */
export type Saying = Readonly<Record<string, unknown>>

/** What goes along with a request. */
export interface RequestExtras extends RequestOptions {
  readonly say?: Saying
  /** Questions on the way are answered by `peer.onRequest`. */
  readonly converse?: boolean
}

/** What goes along with a call of a tool. */
export interface CallExtras extends RequestExtras {
  /** Default: those that were found to fit the tool. */
  readonly args?: Json
  /** Further parameters of `tools/call`. */
  readonly params?: Json
}

/** A tool that was found, or one by its name, which is called without arguments unless they are given. */
type Callable = FoundTool | string

/** All that the kit knows. Declared always, so that scenarios can share a process that was started for one of them. */
const known = [
  ...['manifest', 'intent', 'operational', 'permissions', 'idempotency', 'transactions', 'confirmation', 'provenance'],
  ...['streaming', 'data-references', 'media', 'problem', 'recommendations', 'state', 'events'],
]

/** How a connection is opened that knows every extension. */
export const knowing: OpenOptions = { extensions: Object.fromEntries(known.map(name => [extensionId(name), {}])) }

/** Another connection that knows every extension. */
export async function openRequester(bench: Bench, options: OpenOptions = {}): Promise<Requester> {
  return requesterOn(await bench.open({ ...knowing, ...options }))
}

/** A connection, and the two ways of asking something on it. */
export type Requester = ReturnType<typeof requesterOn>

/** `meta` goes along with every request; `heard` is told every answer. */
export function requesterOn(peer: RawPeer, meta: () => Json = () => ({}), heard: (called: PeerAnswer) => void = () => {}) {
  const told = (answer: Answer): PeerAnswer => {
    const called = taken(answer)
    heard(called)
    return called
  }
  const options = ({ say = {}, ...given }: RequestExtras): RequestOptions => ({
    ...given,
    meta: { ...meta(), ...given.meta, ...named(say) },
  })
  const ask = (method: string, params: Json = {}, given: RequestExtras = {}): Promise<PeerAnswer> => {
    const all = options({ ...given, headers: { ...routing(params), ...given.headers } })
    return letGo((given.converse === true ? peer.converse(method, params, all) : peer.request(method, params, all)).then(told))
  }
  return {
    peer,
    ask,
    call: (tool: Callable, given: CallExtras = {}) => ask('tools/call', paramsFor(tool, given), given),
    /** A call that is not waited for. */
    begin: (tool: Callable, given: CallExtras = {}) => {
      const begun = peer.begin('tools/call', paramsFor(tool, given), options(given))
      return { id: begun.id, called: letGo(begun.answer.then(told)), abort: () => begun.abort() }
    },
  }
}

function paramsFor(tool: Callable, { args, params }: CallExtras): Json {
  const given = args ?? (typeof tool === 'string' ? undefined : tool.args)
  return { name: typeof tool === 'string' ? tool : tool.name, ...(given === undefined ? {} : { arguments: given }), ...params }
}

/** What stateless HTTP repeats in a header, so that a proxy can route by it. */
function routing({ transaction_id: id }: Json): Record<string, string> {
  return typeof id === 'string' ? { 'mcp-name': id } : {}
}

function named(saying: Saying): Json {
  return Object.fromEntries(
    Object.entries(saying).map(([name, value]) => [name === 'progressToken' ? name : extensionId(name), value]),
  )
}

/** Takes an answer apart. */
export function taken(answer: Answer) {
  const result = objectIn(answer.result)
  const meta = objectIn(result, '_meta')
  const frames: readonly (Frame | undefined)[] = [...answer.during, answer.frame]
  return {
    answer,
    /** Empty where there is no result, or one that is no object. */
    result,
    isError: result['isError'] === true,
    /** The texts of its content, joined. */
    text: textIn(result['content']),
    code: answer.error?.code,
    /** The HTTP status, where there was one. */
    status: answer.status,
    /** The problem, wherever it is. */
    problem: objectIn(meta[extensionId('problem')] ?? problemOf(answer.error?.data)),
    frames,
    /** What the result says under an extension; undefined where it says nothing. */
    said: (extension: string) => meta[extensionId(extension)],
    /** The same, where it is an object; empty where it is none. */
    member: (extension: string) => objectIn(meta, extensionId(extension)),
  }
}

/** Beside a number of the protocol it has a name; under our own number it is all there is. */
function problemOf(data: unknown): unknown {
  if (!isRecord(data)) return undefined
  return data[extensionId('problem')] ?? (typeof data['category'] === 'string' ? data : undefined)
}

function textIn(content: unknown): string {
  if (!Array.isArray(content)) return ''
  return content.flatMap(block => (isRecord(block) && typeof block['text'] === 'string' ? [block['text']] : [])).join('\n')
}

/** What a result shows to a model: without what belongs to one answer alone. */
export function shownIn({ result }: PeerAnswer): string {
  return JSON.stringify([result['content'], result['structuredContent'] ?? null, result['isError'] ?? false])
}

/** The call was made: it has a result, and has not failed. Its sentence names the call. */
export const isMade: Expectation<PeerAnswer> = (it, _, says) =>
  (it.answer.error === undefined && !it.isError && it.answer.result !== undefined) || `${says}: ${got(it)}`

/** The call was refused by a problem of this code, with words for those who see no more. Its sentence names the call. */
export function isRefusedBy(code: string): Expectation<PeerAnswer> {
  return (it, _, says) => {
    if (it.problem['code'] !== code) return `${says}: expected a problem ${code}, ${got(it)}`
    return is.word(it.isError ? it.text : it.answer.error?.message) || `The refusal ${code} has no text for a reader`
  }
}

function got({ answer, problem, isError, text }: PeerAnswer): string {
  if (answer.error !== undefined) return `got error ${String(answer.error.code)} ${JSON.stringify(answer.error.message)}`
  if (problem['code'] !== undefined) return `got ${String(problem['code'])}`
  return isError
    ? `got a failed result (${JSON.stringify(text.slice(0, 80))})`
    : `got ${JSON.stringify(answer.result)?.slice(0, 120)}`
}

/** The call failed or was refused, in whatever way. */
export const isFailure: Expectation<PeerAnswer> = ({ isError, code }) => isError || code !== undefined

/** There is an answer with a result. */
export const isServed: Expectation<PeerAnswer> = ({ answer }) => answer.result !== undefined

/** There is a result, and it is an object. */
export const isResult: Expectation<PeerAnswer> = ({ answer }) => isRecord(answer.result)

/** There is an error, or HTTP refused the request. */
export const isRefused: Expectation<PeerAnswer> = ({ code, status = 0 }) => code !== undefined || status >= 400

/** There is a JSON-RPC error, of whichever code. */
export const isFault: Expectation<PeerAnswer> = ({ answer }) => answer.error !== undefined

/** The result has no members but `_meta`. */
export const isEmpty: Expectation<PeerAnswer> = ({ result }) => Object.keys(result).every(name => name === '_meta')

/** The answer is an error of one of these codes. */
export function hasCode(...codes: readonly number[]): Expectation<PeerAnswer> {
  return it => codes.includes(it.code as number)
}

/** The result has these members. */
export function hasResult(pattern: JsonPattern): Expectation<PeerAnswer> {
  return it => fitsPattern(pattern, it.result)
}

/** What the result says under an extension has these members. */
export function hasMeta(extension: string, pattern: JsonPattern): Expectation<PeerAnswer> {
  return it => fitsPattern(pattern, it.said(extension))
}

/** The problem has these members. */
export function hasProblem(pattern: JsonPattern): Expectation<PeerAnswer> {
  return it => fitsPattern(pattern, it.problem)
}

/** The data of the error have these members. */
export function hasErrorData(pattern: JsonPattern): Expectation<PeerAnswer> {
  return it => fitsPattern(pattern, it.answer.error?.data)
}

/** Over HTTP the answer has this status. */
export function hasStatus(wanted: number): Expectation<PeerAnswer, { readonly carrier: Carrier }> {
  return (it, { carrier }) => carrier !== 'http' || it.status === wanted
}

/** The answer is a stored one that is given again. */
export const isReplay = hasMeta('idempotency', { was_replay: true })

/** The answer is not a stored one, though the call had a key. */
export const isFirst = hasMeta('idempotency', { was_replay: false })

/** The answer shows the same to a model as an earlier one of the scenario (`was`). */
export function showsAs(at: number): Expectation<PeerAnswer, { was(at: number): PeerAnswer }> {
  return (it, { was }) => alike(it, was(at))
}

/** The answer shows something else than an earlier one. */
export function showsOtherThan(at: number): Expectation<PeerAnswer, { was(at: number): PeerAnswer }> {
  return (it, { was }) => !alike(it, was(at))
}

/** Whether two answers show the same to a model. */
export function alike(one: PeerAnswer, other: PeerAnswer): boolean {
  return shownIn(one) === shownIn(other)
}
