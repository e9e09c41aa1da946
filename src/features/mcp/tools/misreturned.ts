/** What a tool returned that is no result: who has to know is told what to return instead. */
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'

/** Its words are ours, and may be told to callers. */
export class Misreturned extends TypeError {}

/** The failure of the call; its cause is what the log of the server shows. */
export function misreturned(tool: string, error: unknown): McpError {
  if (error instanceof McpError) return error
  const said = error instanceof Error ? (error.message.split('\n', 1)[0] ?? '') : ''
  const words = error instanceof Misreturned ? said : `what it returned cannot be written as JSON: ${clip(said)}`
  const message = `Tool ${tool}: ${words}`
  return new McpError('internal', message, { cause: new Misreturned(message, { cause: error }) })
}

/** The shape that other libraries return, which would go out as JSON inside JSON. */
export function looksSpelledOut(value: unknown): boolean {
  const content = isRecord(value) ? value['content'] : undefined
  return (
    Array.isArray(content) &&
    content.length > 0 &&
    content.every(block => isRecord(block) && blockTypes.has(String(block['type'])))
  )
}

const blockTypes = new Set(['text', 'image', 'audio', 'resource', 'resource_link'])

/**
 * Throws where the JSON of a value says nothing of it. Of what was written only the beginning is looked at, so that values with an
 * ordinary text cost nothing.
 */
export function checkWritten(value: unknown, text: string | undefined): string {
  if (text === undefined) throw new Misreturned(`it returned a ${typeof value}; return what it gives, as text or plain values`)
  if (text.startsWith('{"0":') || text.startsWith('{"type":"Buffer"') || text === '{}') checkObject(value)
  return text
}

function checkObject(value: unknown): void {
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer)
    throw new Misreturned("it returned bytes; return image(bytes, 'image/png'), audio(bytes, type), or text of them")
  if (value instanceof Map) throw new Misreturned('it returned a Map, which JSON cannot hold; return Object.fromEntries(map)')
  if (value instanceof Error) throw new Misreturned('it returned an Error; throw it')
  if (typeof value === 'object' && value !== null && Symbol.iterator in value)
    throw new Misreturned('it returned a Set or an iterator, which JSON cannot hold; return [...values]')
}
