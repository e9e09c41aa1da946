/** Reading along with HTTP exchanges: which conversation each belongs to, and the frames in bodies and event streams. */
import { isRecord } from '../../jsonrpc/message.ts'
import { SseParser } from '../../transports/sse/parse.ts'
import type { HttpFacts } from './line.ts'
import type { ConversationTape, TapeWriter } from './writer.ts'

type Headers = Readonly<Record<string, string>>

/** What of a body is read; the rest passes unread. */
const mostBytes = 64 * 1024 * 1024

/** Those that say something of the protocol. Where a client comes from and what it is called is nobody's business. */
const telling =
  /^(content-type|accept|last-event-id|mcp-.*|www-authenticate|authorization|retry-after|allow|location|dpop|idempotency-key|x-idempotency-key)$/

export class HttpTape {
  readonly #writer: TapeWriter
  readonly #sessions = new Map<string, ConversationTape>()
  #sessionless: ConversationTape | undefined = undefined
  #exchanges = 0

  constructor(writer: TapeWriter) {
    this.#writer = writer
  }

  begin(method: string, path: string, headers: Headers): ExchangeTape {
    // The old pair knows its sessions by the address for posts.
    const known = this.#sessions.get(headers['mcp-session-id'] ?? path)
    const facts: HttpFacts = { method, path, headers: told(headers) }
    return new ExchangeTape(this, known, ++this.#exchanges, facts)
  }

  /** The pair of 2024-11-05 begins with a stream that names the address for posts. */
  pair(posts: string, at: string): ConversationTape {
    const conversation = this.#writer.conversation('sse')
    const { pathname, search } = new URL(posts, `http://tape${at}`)
    this.name(pathname + search, conversation)
    return conversation
  }

  /** A session that begins has a conversation of its own; all that names none shares one. */
  conversation(opening: boolean): ConversationTape {
    if (opening) return this.#writer.conversation('http')
    this.#sessionless ??= this.#writer.conversation('http')
    return this.#sessionless
  }

  name(session: string, conversation: ConversationTape): void {
    if (this.#sessions.size < 10_000) this.#sessions.set(session, conversation)
  }
}

export class ExchangeTape {
  readonly #tape: HttpTape
  readonly #number: number
  readonly #asked: HttpFacts
  #conversation: ConversationTape | undefined
  #body: Buffer[] = []
  #bytes = 0
  #sse: SseParser | undefined = undefined
  #facts: HttpFacts | undefined = undefined

  constructor(tape: HttpTape, conversation: ConversationTape | undefined, number: number, asked: HttpFacts) {
    this.#tape = tape
    this.#conversation = conversation
    this.#number = number
    this.#asked = asked
  }

  sent(chunk: Buffer): void {
    this.#keep(chunk)
  }

  sentAll(): void {
    const text = this.#taken()
    this.#conversation ??= this.#tape.conversation(isOpening(text))
    if (text === '') this.#conversation.http('client', this.#number, this.#asked)
    else this.#conversation.frame('client', text, { exchange: this.#number, http: this.#asked })
  }

  answered(status: number, headers: Headers): void {
    // An answer may come before all was asked.
    this.#conversation ??= this.#tape.conversation(false)
    const session = headers['mcp-session-id']
    if (session !== undefined) this.#tape.name(session, this.#conversation)
    this.#facts = { status, headers: told(headers) }
    if (!/^text\/event-stream\b/i.test(headers['content-type'] ?? '')) return
    this.#conversation.http('server', this.#number, this.#facts)
    this.#sse = new SseParser({ eventBytes: mostBytes }, (data, type) => this.#event(data, type))
  }

  received(chunk: Buffer): void {
    if (this.#sse === undefined) return this.#keep(chunk)
    try {
      this.#sse.push(chunk)
    } catch {
      // It passes all the same; what cannot be read is not on the tape.
      this.#sse = new SseParser({ eventBytes: mostBytes }, () => {})
    }
  }

  receivedAll(): void {
    if (this.#sse !== undefined || this.#facts === undefined) return
    const text = this.#taken()
    if (isMessage(text)) this.#conversation?.frame('server', text, { exchange: this.#number, http: this.#facts })
    else this.#conversation?.http('server', this.#number, this.#facts)
  }

  failed(): void {
    this.#conversation?.http('server', this.#number, { status: 502 })
  }

  #event(data: string, type: string): void {
    if (type === 'endpoint') this.#conversation = this.#tape.pair(data, this.#asked.path ?? '/')
    else if ((type === '' || type === 'message') && data !== '')
      this.#conversation?.frame('server', data, { exchange: this.#number })
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
  const value = read(text)
  return (Array.isArray(value) ? value : [value]).some(part => isRecord(part) && part['method'] === 'initialize')
}

function isMessage(text: string): boolean {
  const value = read(text)
  return Array.isArray(value) || (isRecord(value) && value['jsonrpc'] !== undefined)
}

function read(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
