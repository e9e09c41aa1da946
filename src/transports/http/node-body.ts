/** Collects the body of a node:http request: counted while it comes, checked as UTF-8, decoded once. */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { notUtf8, type Refusal, tooLarge } from './refusal.ts'

/** Takes the text of a body, or why there is none. */
export interface BodyTaker {
  body(text: string): void
  badBody(refusal: Refusal): void
}

/** Reads the body. A caller that leaves half-way is simply never heard of again. */
export function readBody(req: IncomingMessage, limit: number, taker: BodyTaker): void {
  let first: Buffer | undefined
  let rest: Buffer[] | undefined
  let size = 0
  req.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > limit) {
      if (size - chunk.length <= limit) taker.badBody(tooLarge(limit))
    } else if (first === undefined) first = chunk
    else if (rest === undefined) rest = [first, chunk]
    else rest.push(chunk)
  })
  req.on('end', () => {
    if (size <= limit) decode(rest === undefined ? (first ?? nothing) : Buffer.concat(rest, size), taker)
  })
}

/** The body that a framework has already read: as it came, or written out again. */
export function takeParsed(parsed: unknown, limit: number, taker: BodyTaker): void {
  const bytes = parsed instanceof Uint8Array ? Buffer.from(parsed.buffer, parsed.byteOffset, parsed.byteLength) : undefined
  const text = bytes === undefined ? asText(parsed) : undefined
  if ((bytes?.length ?? Buffer.byteLength(text ?? '')) > limit) taker.badBody(tooLarge(limit))
  else if (bytes !== undefined) decode(bytes, taker)
  else taker.body(text ?? '')
}

function asText(parsed: unknown): string {
  return typeof parsed === 'string' ? parsed : (JSON.stringify(parsed) ?? '')
}

function decode(bytes: Buffer, taker: BodyTaker): void {
  if (isUtf8(bytes)) taker.body(bytes.toString('utf8'))
  else taker.badBody(notUtf8)
}

const nothing = Buffer.alloc(0)
