/** A conversation about tools: calls with what extensions put into `_meta`, and their answers taken apart. */
import { isRecord } from '../../jsonrpc/message.ts'
import type { Bench, Frame, Json, OpenOptions } from '../scenario.ts'
import { extensionId } from '../tools.ts'
import { letGo } from '../wire/let-go.ts'
import type { Answer, RawPeer, RequestOptions } from '../wire/raw-peer.ts'

/** The answer to a call. */
export interface Called {
  readonly answer: Answer
  /** Empty where the call was answered by an error. */
  readonly result: Json
  readonly isError: boolean
  /** The texts of its content, joined. */
  readonly text: string
  readonly code: unknown
  /** The problem, wherever it is. */
  readonly problem: Json
  readonly frames: readonly (Frame | undefined)[]
  /** What the result says under an extension; undefined where it says nothing. */
  said(extension: string): unknown
  /** The same, where it is an object; empty where it is none. */
  member(extension: string): Json
}

/** What a call says under extensions, by their short names. */
export type Saying = Readonly<Record<string, unknown>>

export interface Talk {
  readonly peer: RawPeer
  call(tool: string, args: Json, saying?: Saying, options?: RequestOptions & { readonly params?: Json }): Promise<Called>
  /** Answers questions on the way. */
  converse(tool: string, args: Json, saying?: Saying, options?: RequestOptions): Promise<Called>
  begin(tool: string, args: Json, saying?: Saying, options?: RequestOptions): { readonly called: Promise<Called>; abort(): void }
  /** A method of an extension. */
  ask(method: string, params?: Json, saying?: Saying): Promise<Called>
}

/** All that the kit knows. Declared always, so that scenarios can share a process that was started for one of them. */
const known = [
  ...['manifest', 'intent', 'operational', 'permissions', 'idempotency', 'transactions', 'confirmation', 'provenance'],
  ...['streaming', 'data-references', 'media', 'problem', 'recommendations', 'state', 'events'],
]

/** Opens one that declares every extension. */
export async function openTalk(bench: Bench, options: OpenOptions = {}): Promise<Talk> {
  const declared = Object.fromEntries(known.map(name => [extensionId(name), {}]))
  return talkOf(await bench.open({ ...options, extensions: { ...declared, ...options.extensions } }))
}

export function talkOf(peer: RawPeer): Talk {
  const params = (tool: string, args: Json, more: Json = {}): Json => ({ name: tool, arguments: args, ...more })
  const options = (saying: Saying | undefined, given: RequestOptions = {}): RequestOptions => ({
    ...given,
    meta: { ...given.meta, ...named(saying) },
  })
  return {
    peer,
    call: (tool, args, saying, given) =>
      letGo(peer.request('tools/call', params(tool, args, given?.params), options(saying, given)).then(taken)),
    converse: (tool, args, saying, given) =>
      letGo(peer.converse('tools/call', params(tool, args), options(saying, given)).then(taken)),
    begin: (tool, args, saying, given) => {
      const begun = peer.begin('tools/call', params(tool, args), options(saying, given))
      return { called: letGo(begun.answer.then(taken)), abort: () => begun.abort() }
    },
    ask: (method, given = {}, saying = undefined) =>
      letGo(peer.request(method, given, options(saying, { headers: routing(given) })).then(taken)),
  }
}

/** What stateless HTTP repeats in a header, so that a proxy can route by it. */
function routing({ transaction_id: id }: Json): Record<string, string> {
  return typeof id === 'string' ? { 'mcp-name': id } : {}
}

function named(saying: Saying = {}): Json {
  return Object.fromEntries(
    Object.entries(saying).map(([name, value]) => [name === 'progressToken' ? name : extensionId(name), value]),
  )
}

export function taken(answer: Answer): Called {
  const result = isRecord(answer.result) ? answer.result : {}
  const meta = isRecord(result['_meta']) ? result['_meta'] : {}
  const problem = meta[extensionId('problem')] ?? problemOf(answer.error?.data)
  return {
    answer,
    result,
    isError: result['isError'] === true,
    text: textIn(result['content']),
    code: answer.error?.code,
    problem: isRecord(problem) ? problem : {},
    frames: [...answer.during, answer.frame],
    said: extension => meta[extensionId(extension)],
    member: extension => {
      const said = meta[extensionId(extension)]
      return isRecord(said) ? said : {}
    },
  }
}

/** Beside a number of the protocol it has a name; under our own number it is all there is. */
function problemOf(data: unknown): unknown {
  if (!isRecord(data)) return undefined
  return data[extensionId('problem')] ?? (typeof data['category'] === 'string' ? data : undefined)
}

export function textIn(content: unknown): string {
  if (!Array.isArray(content)) return ''
  return content.flatMap(block => (isRecord(block) && typeof block['text'] === 'string' ? [block['text']] : [])).join('\n')
}

/** What a result shows to a model: without what belongs to one answer alone. */
export function shownIn(result: Json): string {
  return JSON.stringify([result['content'], result['structuredContent'] ?? null, result['isError'] ?? false])
}
