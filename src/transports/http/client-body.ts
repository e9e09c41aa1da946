/** The kinds of body that may answer a POST, each read in pieces and within its bounds. */
import { ConnectionError } from '../../jsonrpc/connection.ts'
import type { FrameLimits } from '../../jsonrpc/limits.ts'
import { ByteBuffer, decodeUtf8 } from '../sse/client-bytes.ts'
import { SseParser } from '../sse/parse.ts'
import { isMessage } from './client-answer.ts'
import { hintFrom, isChallenge, mediaType, redirection, refusal, wrongContent } from './client-refusal.ts'
import type { HeaderView } from './client-wire.ts'

/** Bytes of a body of no interest that are read, so that its socket can serve again, before it is cut instead. */
const drainBytes = 64 * 1024
/** Of those, the ones that are kept to say what the refusal said. */
const hintBytes = 1024

/** Whoever sent the message that this answers. */
export interface BodyUser {
  readonly limits: FrameLimits
  /** The message was a request: some frame must answer it. */
  readonly awaited: boolean
  readonly settled: boolean
  frame(text: string, status: number): void
  /** The outcome; only the first counts. */
  settle(error?: ConnectionError): void
}

/** Both may throw ConnectionError: the answer is then of no more use. */
export interface Body {
  chunk(bytes: Uint8Array): void
  end(): void
  /** Where it is a stream of events. */
  readonly parser?: SseParser
}

/** The body of a 2xx answer. */
export function successBody(user: BodyUser, status: number, headers: HeaderView): Body {
  const empty = status === 202 || status === 204
  const type = empty ? '' : mediaType(headers.get('content-type'))
  if (!user.awaited) user.settle()
  if (type === 'application/json') return new JsonBody(user, status, headers)
  if (type === 'text/event-stream') return new EventsBody(user, status)
  if (user.awaited) user.settle(empty ? unanswered(status) : wrongContent(status, headers))
  return new Drain()
}

/** The body of any other answer. A JSON-RPC error in it is an answer like any other, a challenge never is. */
export function refusalBody(user: BodyUser, status: number, headers: HeaderView): Body {
  if (status < 400) user.settle(redirection(status, headers))
  if (user.settled) return new Drain()
  const json = mediaType(headers.get('content-type')) === 'application/json'
  return json && !isChallenge(status, headers) ? new JsonBody(user, status, headers) : new Hint(user, status, headers)
}

class JsonBody implements Body {
  readonly #user: BodyUser
  readonly #status: number
  readonly #headers: HeaderView
  readonly #bytes = new ByteBuffer()

  constructor(user: BodyUser, status: number, headers: HeaderView) {
    this.#user = user
    this.#status = status
    this.#headers = headers
    const length = headers.get('content-length')
    if (length !== null && length !== undefined) this.#check(Number(length))
  }

  chunk(bytes: Uint8Array): void {
    this.#check(this.#bytes.length + bytes.length)
    this.#bytes.push(bytes)
  }

  end(): void {
    const user = this.#user
    const failed = this.#status >= 400
    const bytes = this.#bytes.take()
    const text = withoutMark(decodeUtf8(bytes))
    // Only what answers a request is sure to be meant as a message; elsewhere servers send JSON of all kinds.
    const expected = user.awaited && !failed
    if (text !== '' && (expected || isMessage(text, user.limits))) user.frame(text, this.#status)
    if (!user.settled) user.settle(failed ? refusal(this.#status, this.#headers, hintFrom(bytes)) : unanswered(this.#status))
  }

  #check(length: number): void {
    const most = this.#user.limits.frameBytes
    if (length <= most) return
    throw new ConnectionError(
      'too-large',
      `The answer is longer than ${most} bytes, this client's limit; raise limits.frameBytes if that is expected`,
      {
        status: this.#status,
      },
    )
  }
}

class EventsBody implements Body {
  readonly parser: SseParser

  constructor(user: BodyUser, status: number) {
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

/** A refusal that is not JSON: its beginning is kept for the error. */
class Hint implements Body {
  readonly #user: BodyUser
  readonly #status: number
  readonly #headers: HeaderView
  readonly #bytes = new ByteBuffer()
  readonly #rest = new Drain()

  constructor(user: BodyUser, status: number, headers: HeaderView) {
    this.#user = user
    this.#status = status
    this.#headers = headers
  }

  chunk(bytes: Uint8Array): void {
    const room = hintBytes - this.#bytes.length
    if (room > 0) this.#bytes.push(bytes.subarray(0, room))
    else this.end()
    this.#rest.chunk(bytes)
  }

  end(): void {
    if (!this.#user.settled) this.#user.settle(refusal(this.#status, this.#headers, hintFrom(this.#bytes.take())))
  }
}

class Drain implements Body {
  #read = 0

  chunk(bytes: Uint8Array): void {
    this.#read += bytes.length
    if (this.#read > drainBytes)
      throw new ConnectionError(
        'too-large',
        `The server goes on sending where nothing more is expected; cut after ${drainBytes} bytes`,
      )
  }

  end(): void {
    // Nothing was awaited.
  }
}

function unanswered(status: number): ConnectionError {
  return new ConnectionError(
    'protocol',
    `The server answered HTTP ${status} without the answer to the request, whose id it must repeat exactly`,
    { status },
  )
}

function withoutMark(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}
