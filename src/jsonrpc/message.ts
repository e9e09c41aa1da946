/**
 * The JSON-RPC 2.0 message shapes, and the frames that responses and requests are written as. Nothing here knows a word of MCP.
 */

/** The id of a request. */
export type Id = string | number

/** A request. */
export interface Request {
  readonly jsonrpc: '2.0'
  readonly id: Id
  readonly method: string
  readonly params?: Params
}

/** The member `error` of a response. */
export interface ErrorBody {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

/** The params of a message, or the arguments of a tool: always an object. */
export type Params = Readonly<Record<string, unknown>>

/** A value, or a promise of it. */
export type Awaitable<T> = T | PromiseLike<T>

/** Whether a value is an object, and no array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a value has to be awaited. */
export function isThenable<T>(value: Awaitable<T>): value is PromiseLike<T> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}

/** The most characters of an id or token: it comes back with every answer, and with every step of progress. */
export const idLength = 1_024

/** Strings of that length, and integers that survive a round trip through every JSON parser. */
export function isId(value: unknown): value is Id {
  return typeof value === 'string' ? value.length <= idLength : Number.isSafeInteger(value)
}

/** Message → frame. Answers are spliced from their parts, so that a result that is already text is not serialised again. */
export function idText(id: Id): string {
  return typeof id === 'number' ? `${id}` : JSON.stringify(id)
}

/** `result` is JSON text. */
export function successFrame(id: Id, result: string): string {
  return `{"jsonrpc":"2.0","id":${idText(id)},"result":${result}}`
}

/** An undefined id is left out; null is written, for wires that demand the member. */
export function failureFrame(id: Id | null | undefined, error: ErrorBody): string {
  const member = id === undefined ? '' : `"id":${id === null ? 'null' : idText(id)},`
  return `{"jsonrpc":"2.0",${member}"error":${JSON.stringify(error)}}`
}

/** `params` is JSON text. */
export function requestFrame(id: Id, method: string, params: string): string {
  return `{"jsonrpc":"2.0","id":${idText(id)},"method":${JSON.stringify(method)},"params":${params}}`
}

/** The frame of a notification. */
export function notificationFrame(method: string, params: Params | undefined): string {
  const tail = params === undefined ? '' : `,"params":${JSON.stringify(params)}`
  return `{"jsonrpc":"2.0","method":${JSON.stringify(method)}${tail}}`
}

/** A copy with only these members, as far as they are there. */
export function picked<T extends object, K extends keyof T>(value: T, ...names: readonly K[]): Pick<T, K> {
  return Object.fromEntries(names.flatMap(name => (value[name] === undefined ? [] : [[name, value[name]]]))) as Pick<T, K>
}

/** Those of the members that have a value: what was not given is absent, not undefined. */
export function given<M extends object>(members: M): { readonly [K in keyof M]?: Exclude<M[K], undefined> } {
  const found: { [K in keyof M]?: M[K] } = {}
  for (const name in members) if (members[name] !== undefined) found[name] = members[name]
  return found as ReturnType<typeof given<M>>
}
