/** Records HTTP exchanges as they pass: which connection each belongs to, and the frames in bodies and event streams. */
import { isRecord } from '../jsonrpc/message.ts'
import { SseParser } from '../transports/sse/parse.ts'
import { type HttpFacts, jsonValue, messagesOf } from './format.ts'
import type { ConnectionWriter, RecordingWriter } from './writer.ts'

type Headers = Readonly<Record<string, string>>

/** What of a body is read; the rest passes unread. */
const mostBytes = 64 * 1024 * 1024

/** Those that say something of the protocol. Where a client comes from and what it is called is nobody's business. */
const telling =
  /^(content-type|accept|last-event-id|mcp-.*|www-authenticate|authorization|retry-after|allow|location|dpop|idempotency-key|x-idempotency-key)$/

/** All exchanges of a proxy. */
export class HttpRecorder {
  readonly #writer: RecordingWriter
  readonly #sessions = new Map<string, ConnectionWriter>()
  #sessionless: ConnectionWriter | undefined = undefined
  #exchanges = 0

  constructor(writer: RecordingWriter) {
    this.#writer = writer
  }

  begin(method: string, path: string, headers: Headers): ExchangeRecorder {
    // The old pair knows its sessions by the address for posts.
    const known = this.#sessions.get(headers['mcp-session-id'] ?? path)
    const facts: HttpFacts = { method, path, headers: told(headers) }
    return new ExchangeRecorder(this, known, ++this.#exchanges, facts)
  }

  /** The pair of 2024-11-05 begins with a stream that names the address for posts. */
  pair(posts: string, at: string): ConnectionWriter {
    const connection = this.#writer.connection('sse')
    const { pathname, search } = new URL(posts, `http://tape${at}`)
    this.name(pathname + search, connection)
    return connection
  }

  /** A session that begins has a connection of its own; all that names none shares one. */
  connection(opening: boolean): ConnectionWriter {
    if (opening) return this.#writer.connection('http')
    this.#sessionless ??= this.#writer.connection('http')
    return this.#sessionless
  }

  name(session: string, connection: ConnectionWriter): void {
    if (this.#sessions.size < 10_000) this.#sessions.set(session, connection)
  }
}

/** One exchange. */
export class ExchangeRecorder {
  readonly #recorder: HttpRecorder
  readonly #number: number
  readonly #asked: HttpFacts
  #connection: ConnectionWriter | undefined
  #body: Buffer[] = []
  #bytes = 0
  #sse: SseParser | undefined = undefined
  #facts: HttpFacts | undefined = undefined

  constructor(recorder: HttpRecorder, connection: ConnectionWriter | undefined, number: number, asked: HttpFacts) {
    this.#recorder = recorder
    this.#connection = connection
    this.#number = number
    this.#asked = asked
  }

  sent(chunk: Buffer): void {
    this.#keep(chunk)
  }

  sentAll(): void {
    const text = this.#taken()
    this.#connection ??= this.#recorder.connection(isOpening(text))
    if (text === '') this.#connection.http('client', this.#number, this.#asked)
    else this.#connection.frame('client', text, { exchange: this.#number, http: this.#asked })
  }

  answered(status: number, headers: Headers): void {
    // An answer may come before all was asked.
    this.#connection ??= this.#recorder.connection(false)
    const session = headers['mcp-session-id']
    if (session !== undefined) this.#recorder.name(session, this.#connection)
    this.#facts = { status, headers: told(headers) }
    if (!/^text\/event-stream\b/i.test(headers['content-type'] ?? '')) return
    this.#connection.http('server', this.#number, this.#facts)
    this.#sse = new SseParser({ eventBytes: mostBytes }, (data, type) => this.#event(data, type))
  }

  received(chunk: Buffer): void {
    if (this.#sse === undefined) return this.#keep(chunk)
    try {
      this.#sse.push(chunk)
    } catch {
      // It passes all the same; what cannot be read is not recorded.
      this.#sse = new SseParser({ eventBytes: mostBytes }, () => {})
    }
  }

  receivedAll(): void {
    if (this.#sse !== undefined || this.#facts === undefined) return
    const text = this.#taken()
    if (isMessage(text)) this.#connection?.frame('server', text, { exchange: this.#number, http: this.#facts })
    else this.#connection?.http('server', this.#number, this.#facts)
  }

  failed(): void {
    this.#connection?.http('server', this.#number, { status: 502 })
  }

  #event(data: string, type: string): void {
    if (type === 'endpoint') this.#connection = this.#recorder.pair(data, this.#asked.path ?? '/')
    else if ((type === '' || type === 'message') && data !== '')
      this.#connection?.frame('server', data, { exchange: this.#number })
  }

  #keep(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes <= mostBytes) this.#body.push(chunk)
  }

  #taken(): string {
    const text = Buffer.concat(this.#body).toString('utf8')
    this.#body = []
    this.#bytes = 0
    return text
  }
}

function told(headers: Headers): Headers {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => telling.test(name)))
}

function isOpening(text: string): boolean {
  return messagesOf(jsonValue(text)).some(({ method }) => method === 'initialize')
}

function isMessage(text: string): boolean {
  const value = jsonValue(text)
  return Array.isArray(value) || (isRecord(value) && value['jsonrpc'] !== undefined)
}
