/**
 * Is this frame the answer to that request? The engine parses frames; here only the role matters, so the shapes that
 * servers really write are told by their first and last characters, and a parse is the last resort.
 */
import type { FrameLimits } from '../../jsonrpc/limits.ts'
import { type ErrorBody, type Id, isRecord } from '../../jsonrpc/message.ts'
import { parse } from '../../jsonrpc/parse.ts'
import { failureFrame, idText } from '../../jsonrpc/serialize.ts'

const head = '{"jsonrpc":"2.0","id":'

/**
 * The frame to hand on if `text` answers `id`, else undefined. It is `text` itself, except for an error without an id
 * (one that the server could not read, or did not care to repeat): the exchange tells whose it is, so the id is put in.
 * What is both answer and request, or breaks off behind a good beginning, is malformed and may be taken for an answer.
 */
export function answerTo(text: string, id: Id, limits: FrameLimits): string | undefined {
  const key = idText(id)
  if (text.startsWith(head)) {
    const after = head.length + key.length
    if (text.startsWith(key, head.length) && (text.startsWith(',"result":', after) || text.startsWith(',"error":', after)))
      return text
  } else if (text.startsWith('{"result":') || text.startsWith('{"error":')) {
    // The last member before the closing brace belongs to the outermost object, whatever lies between.
    if (text.endsWith(`,"jsonrpc":"2.0","id":${key}}`)) return text
  } else if (text.startsWith('{"jsonrpc":"2.0","method":') || text.startsWith('{"method":')) return undefined
  return readAnswer(text, id, limits)
}

function readAnswer(text: string, id: Id, limits: FrameLimits): string | undefined {
  const value = tryParse(text, limits)
  if (Array.isArray(value)) return value.some(item => answers(item, id)) ? text : undefined
  if (answers(value, id)) return text
  if (!isRecord(value) || 'method' in value || (value['id'] !== undefined && value['id'] !== null)) return undefined
  return isErrorBody(value['error']) ? failureFrame(id, value['error']) : undefined
}

/** Whether a text is a JSON-RPC message at all; error bodies of other makers are JSON too. */
export function isMessage(text: string, limits: FrameLimits): boolean {
  const value = tryParse(text, limits)
  return Array.isArray(value) ? value.some(isEnvelope) : isEnvelope(value)
}

function isEnvelope(value: unknown): boolean {
  return isRecord(value) && value['jsonrpc'] === '2.0'
}

function answers(value: unknown, id: Id): boolean {
  return isRecord(value) && value['id'] === id && !('method' in value) && ('result' in value || 'error' in value)
}

function isErrorBody(value: unknown): value is ErrorBody & Record<string, unknown> {
  return isRecord(value) && typeof value['code'] === 'number' && typeof value['message'] === 'string'
}

/** What cannot be parsed within the limits is no answer; the engine says so when it gets the frame. */
function tryParse(text: string, limits: FrameLimits): unknown {
  try {
    return parse(text, limits)
  } catch {
    return undefined
  }
}
