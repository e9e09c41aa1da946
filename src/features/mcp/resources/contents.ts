/** What a handler returned → the contents of a resource. Text and bytes are enough; parts are for more control. */
import { toBase64 } from '../../../core/base64.ts'
import { withAuthored } from '../../../engine/reserved.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { ResourceContents } from '../content/messages.ts'

/** One part of a resource, spelled out: `uri` and `mimeType` are the resource's own unless given. */
interface ContentsPart {
  readonly uri?: string
  readonly mimeType?: string
  readonly text?: string
  /** Bytes, or base64 of them. */
  readonly blob?: string | Uint8Array
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** Nothing (or no parts) means that there is no such resource. */
export type ResourceOutput = string | Uint8Array | ContentsPart | readonly ContentsPart[] | undefined | null

/** Undefined when there is nothing: an empty list would say that the resource exists. `server`: how it names itself. */
export function toContents(
  value: unknown,
  uri: string,
  mimeType: string | undefined,
  server: string,
): readonly ResourceContents[] | undefined {
  if (value === undefined || value === null) return undefined
  const parts: readonly unknown[] = Array.isArray(value) ? value : [value]
  return parts.length === 0 ? undefined : parts.map(part => withAuthored(toPart(part, uri, mimeType), server))
}

function toPart(part: unknown, uri: string, mimeType: string | undefined): ResourceContents {
  const type = mimeType === undefined ? {} : { mimeType }
  if (typeof part === 'string') return { uri, ...type, text: part }
  if (part instanceof Uint8Array) return { uri, ...type, blob: toBase64(part) }
  if (isRecord(part)) {
    const { text, blob, ...rest } = part
    if (typeof text === 'string') return { uri, ...type, ...rest, text }
    if (typeof blob === 'string') return { uri, ...type, ...rest, blob }
    if (blob instanceof Uint8Array) return { uri, ...type, ...rest, blob: toBase64(blob) }
  }
  throw new TypeError('The handler of a resource must return text, bytes, or parts that have text or blob')
}
