/** What a frame is, in a row of a list: its kind, its method, how it went, and a line about it. */
import { clip } from '../../jsonrpc/limits.ts'
import { type Id, isId, isRecord } from '../../jsonrpc/message.ts'
import { messagesOf, type RecordedMessage, tokenOf } from '../../recording/format.ts'
import type { FrameRow } from '../contract/frames.ts'

const aboutLength = 160

/** What is read from a frame. */
export interface FrameSummary extends Pick<FrameRow, 'kind' | 'method' | 'id' | 'status' | 'code'> {
  readonly about: string
  /** Requests in the frame, and how they want progress told. */
  readonly asks: readonly { readonly id: Id; readonly method: string; readonly token: unknown }[]
  /** Requests that the frame answers. */
  readonly answers: readonly Id[]
  /** A notification: the progress token that it names. */
  readonly token: unknown
}

/** Reads a frame that was parsed. */
export function summaryOf(value: unknown, text: string): FrameSummary {
  const messages = messagesOf(value)
  const [first] = messages
  const asks = messages.flatMap(({ id, method, params }) =>
    isId(id) && typeof method === 'string' ? [{ id, method, token: tokenOf(params) }] : [],
  )
  const answers = messages.flatMap(({ id, method }) => (isId(id) && method === undefined ? [id] : []))
  const rest = { asks, answers, token: undefined }
  if (first === undefined) return { ...rest, kind: 'invalid', about: clip(text.slice(0, 400), aboutLength) }
  const one = messageSummary(first)
  if (!Array.isArray(value)) return { ...rest, ...one }
  const about = clip(`${messages.length} messages: ${one.method ?? one.kind} ${one.about}`, aboutLength)
  return { ...rest, ...one, kind: 'batch', about }
}

type MessageSummary = Pick<FrameSummary, 'kind' | 'method' | 'id' | 'status' | 'code' | 'about' | 'token'>

function messageSummary(message: RecordedMessage): MessageSummary {
  const { id, method, params, result, error } = message
  const named = isId(id) ? { id } : {}
  const none = { ...named, token: undefined }
  if (typeof method === 'string') {
    const about = clip(aboutRequest(method, params), aboutLength)
    if (isId(id)) return { ...none, kind: 'request', method: clip(method), status: 'open', about }
    const token = isRecord(params) ? params['progressToken'] : undefined
    return { kind: 'notification', method: clip(method), about, token }
  }
  if (isRecord(error)) {
    const { code, message: says } = error
    const number = typeof code === 'number' ? { code } : {}
    return { ...none, ...number, kind: 'error', status: 'error', about: clip(`${String(code)} ${shown(says)}`, aboutLength) }
  }
  if (result === undefined) return { ...none, kind: 'invalid', about: clip(shown(message), aboutLength) }
  const status = !isRecord(result) ? 'ok' : result['isError'] === true ? 'tool-error' : asksFirst(result) ? 'asks' : 'ok'
  return { ...none, kind: 'result', status, about: clip(aboutResult(result), aboutLength) }
}

/** A result that asks for input before it is one. */
function asksFirst(result: Readonly<Record<string, unknown>>): boolean {
  return isRecord(result['inputRequests']) || result['resultType'] === 'input_required'
}

function aboutRequest(method: string, params: unknown): string {
  if (!isRecord(params)) return ''
  const { _meta, name, uri, arguments: args, progress, total, message, data, ...rest } = params
  if (method === 'notifications/progress')
    return [`${shown(progress)}${total === undefined ? '' : `/${shown(total)}`}`, message].filter(Boolean).map(shown).join(' ')
  const parts = [name, uri, args, data, message].filter(part => part !== undefined)
  return parts.length > 0 ? parts.map(shown).join(' ') : Object.keys(rest).length === 0 ? '' : shown(rest)
}

/** The text of its content, the number of what it lists, else its members. */
function aboutResult(result: unknown): string {
  if (!isRecord(result)) return shown(result)
  const { content, contents, messages, _meta, resultType, ...rest } = result
  for (const blocks of [content, contents, messages]) {
    if (!Array.isArray(blocks)) continue
    const texts = blocks.slice(0, 8).map(blockText)
    return texts.join(' ')
  }
  const list = Object.entries(rest).find(([, items]) => Array.isArray(items))
  if (list !== undefined && Object.keys(rest).length <= 4) return `${(list[1] as unknown[]).length} ${list[0]}`
  return shown(rest)
}

function blockText(block: unknown): string {
  if (!isRecord(block)) return shown(block)
  const { text, content, type, uri } = block
  if (typeof text === 'string') return text.slice(0, 400)
  if (isRecord(content)) return blockText(content)
  return shown(uri ?? type ?? '')
}

/** Short: what is long is cut before it is looked at. */
function shown(value: unknown): string {
  if (typeof value === 'string') return value.slice(0, 400)
  return beginning(value, 400)
}

/** The beginning of a value as JSON, without writing out all of it. */
function beginning(value: unknown, length: number): string {
  let left = length
  const text = JSON.stringify(value, (_, each: unknown) => {
    if (left <= 0) return undefined
    if (typeof each === 'string') {
      const part = each.slice(0, left)
      left -= part.length
      return part
    }
    if (Array.isArray(each)) return each.slice(0, 20)
    left -= 2
    return each
  })
  return (text ?? '').slice(0, length)
}
