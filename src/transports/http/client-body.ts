/**
 * Reads the bodies that may answer a POST (JSON, events, error texts), each in pieces and within its limit, and decides whether
 * a frame answers the request.
 */
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { clip, type FrameLimits } from '../../jsonrpc/limits.ts'
import { type ErrorBody, failureFrame, type Id, idText, isRecord } from '../../jsonrpc/message.ts'
import { parse } from '../../jsonrpc/parse.ts'
import { ByteBuffer, decodeUtf8, SseParser } from '../sse/parse.ts'
import type { HttpClientExchange } from './client-exchange.ts'
import { type HeaderView, httpRefusal, mediaType, redirection, wrongContent } from './client-wire.ts'

/** Bytes of an irrelevant body that are read, so that its socket can be reused; then it is closed. */
const drainBytes = 64 * 1024
/** Bytes of an error body that are kept for the error message. */
const hintBytes = 8 * 1024

/** A body being read. Both methods may throw ConnectionError: the answer is then unusable. */
export interface Body {
  chunk(bytes: Uint8Array): void
  end(): void
  /** Present if the body is an event stream. */
  readonly parser?: SseParser
}

/** The body of a 2xx answer. */
export function successBody(user: HttpClientExchange, status: number, headers: HeaderView): Body {
  const empty = status === 202 || status === 204
  const type = empty ? '' : mediaType(headers.get('content-type'))
  if (!user.awaited) user.settle()
  if (type === 'application/json') return new JsonBody(user, status, headers)
  if (type === 'text/event-stream') return new EventsBody(user, status)
  if (user.awaited) user.settle(empty ? unanswered(status) : wrongContent(status, headers))
  return new Drain()
}

/** The body of any other answer. A JSON-RPC error in it counts as the answer, unless the status is a challenge. */
export function refusalBody(user: HttpClientExchange, status: number, headers: HeaderView): Body {
  if (status < 400) user.settle(redirection(status, headers))
  if (user.settled) return new Drain()
  const json = mediaType(headers.get('content-type')) === 'application/json'
  return json && !isChallenge(status, headers) ? new JsonBody(user, status, headers) : new Hint(user, status, headers)
}

/** A body whose end decides the outcome of the exchange. */
abstract class DecisiveBody implements Body {
  protected readonly user: HttpClientExchange
  protected readonly status: number
  protected readonly headers: HeaderView
  protected readonly bytes = new ByteBuffer()

  constructor(user: HttpClientExchange, status: number, headers: HeaderView) {
    this.user = user
    this.status = status
    this.headers = headers
  }

  abstract chunk(bytes: Uint8Array): void
  abstract end(): void
}

/** A JSON body, collected and passed on as one frame. */
class JsonBody extends DecisiveBody {
  constructor(user: HttpClientExchange, status: number, headers: HeaderView) {
    super(user, status, headers)
    const length = headers.get('content-length')
    if (length !== null && length !== undefined) this.#check(Number(length))
  }

  chunk(bytes: Uint8Array): void {
    this.#check(this.bytes.length + bytes.length)
    this.bytes.push(bytes)
  }

  end(): void {
    const user = this.user
    const failed = this.status >= 400
    const bytes = this.bytes.take()
    const text = withoutMark(decodeUtf8(bytes))
    // Only the answer to a request is surely a message; in other places servers send JSON of all kinds.
    const expected = user.awaited && !failed
    if (text !== '' && (expected || isMessage(text, user.limits))) user.frame(text, this.status)
    if (!user.settled) user.settle(failed ? httpRefusal(this.status, this.headers, hintFrom(bytes)) : unanswered(this.status))
  }

  #check(length: number): void {
    const most = this.user.limits.frameBytes
    if (length <= most) return
    throw new ConnectionError(
      'too-large',
      `The response is longer than ${most} bytes, this client's limit; raise limits.frameBytes if that is expected`,
      {
        status: this.status,
      },
    )
  }
}

/** An event stream; each event is a frame. */
class EventsBody implements Body {
  readonly parser: SseParser

  constructor(user: HttpClientExchange, status: number) {
    this.parser = new SseParser({ eventBytes: user.limits.frameBytes }, (data, type) => {
      if (data !== '' && type === '') user.frame(data, status)
    })
  }

  chunk(bytes: Uint8Array): void {
    this.parser.push(bytes)
  }

  end(): void {
    // Whether the stream may end here depends on what came before: the exchange knows.
  }
}

/** An error that is not JSON: its beginning is kept for the message. */
class Hint extends DecisiveBody {
  readonly #rest = new Drain()

  chunk(bytes: Uint8Array): void {
    const space = hintBytes - this.bytes.length
    if (space > 0) this.bytes.push(bytes.subarray(0, space))
    else this.end()
    this.#rest.chunk(bytes)
  }

  end(): void {
    if (!this.user.settled) this.user.settle(httpRefusal(this.status, this.headers, hintFrom(this.bytes.take())))
  }
}

/** A body that is read and discarded. */
class Drain implements Body {
  #read = 0

  chunk(bytes: Uint8Array): void {
    this.#read += bytes.length
    if (this.#read > drainBytes)
      throw new ConnectionError(
        'too-large',
        `The server keeps sending after the end of the response; the connection was closed after ${drainBytes} bytes`,
      )
  }

  end(): void {
    // Nothing was awaited.
  }
}

/** True for an answer that asks for credentials: its headers count, whatever its body says. */
function isChallenge(status: number, headers: HeaderView): boolean {
  return status === 401 || (status === 403 && typeof headers.get('www-authenticate') === 'string')
}

/** Longer bodies are not parsed just for a hint. */
const parsedHint = 64 * 1024
const lenient = new TextDecoder()

/** The most useful part of an error body: the message if it is JSON, else its beginning. */
function hintFrom(body: Uint8Array): string {
  const text = lenient.decode(body.length > parsedHint ? body.subarray(0, 1024) : body)
  return saidIn(text) ?? clip(text.slice(0, 200).replace(/\s+/g, ' ').trim())
}

function saidIn(text: string): string | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isRecord(value)) return undefined
  const inner = isRecord(value['error']) ? value['error']['message'] : undefined
  const words = inner ?? value['error_description'] ?? value['message'] ?? value['error']
  return typeof words === 'string' ? words : undefined
}

function unanswered(status: number): ConnectionError {
  return new ConnectionError('protocol', `The server sent HTTP ${status} without a response that has the id of the request`, {
    status,
  })
}

function withoutMark(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}

// Decides whether a frame answers a request. The engine parses frames; here the usual forms are recognized by their first and
// last characters, and parsing is the last resort.

const head = '{"jsonrpc":"2.0","id":'

/**
 * The frame to pass on if `text` answers `id`, else undefined. It is `text` itself, except for an error without an id: the
 * exchange knows the request, so the id is added. A malformed frame with a valid beginning may be taken for an answer.
 */
export function answerTo(text: string, id: Id, limits: FrameLimits): string | undefined {
  const key = idText(id)
  if (text.startsWith(head)) {
    const after = head.length + key.length
    if (text.startsWith(key, head.length) && (text.startsWith(',"result":', after) || text.startsWith(',"error":', after)))
      return text
  } else if (text.startsWith('{"result":') || text.startsWith('{"error":')) {
    // The last member before the closing brace belongs to the outermost object, whatever is in between.
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

/** Whether a text is a JSON-RPC message; error bodies of other software are JSON too. */
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

/** A text that cannot be parsed within the limits is no answer; the engine reports it when it gets the frame. */
function tryParse(text: string, limits: FrameLimits): unknown {
  try {
    return parse(text, limits)
  } catch {
    return undefined
  }
}
