/** A client of one wire that says exactly what it is told to, and gives what comes back for it. */
import { type Answer, fire, Line, noAnswer, parseAnswer } from './raw.ts'
import { type Era, type Frame, headLines, hello, type Id, isModern, mirrored, ping, posted } from './wire.ts'
import { opcodes, readFrames, wsFrame } from './ws-frames.ts'

export interface Heard {
  /** Of HTTP; 0 where the carrier has none. */
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly frames: readonly Frame[]
  /** What the frames were made of. */
  readonly text: string
  /** True if the other end closed the line on us. */
  readonly closed: boolean
}

export interface Saying {
  /** What the headers of a stateless request name; by default what the body says. */
  readonly method?: string
  readonly name?: string
  /** More header lines. */
  readonly lines?: readonly string[]
  /** On a line that stays open: what is waited for beside the answer to a ping that follows. */
  readonly awaits?: Id
  readonly ms?: number
}

/** Something said whose answer is not waited for at once. */
export interface Pending {
  frames(): readonly Frame[]
  /** Waits until what came fits; false if it never did. */
  until(fits: (frames: readonly Frame[]) => boolean, ms?: number): Promise<boolean>
  /** Hangs up, where the request has a line of its own. */
  leave(): void
}

export interface Peer {
  readonly session: string | undefined
  begin(body: Frame, saying?: Saying): Pending
  say(body: string | Buffer | Frame, saying?: Saying): Promise<Heard>
  /** On a line that stays open: everything that has come so far. */
  heard(): readonly Frame[]
  close(): void
}

/** By HTTP/1.0, so that the stream comes as it is, not in chunks. */
const openPair = 'GET /sse HTTP/1.0\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n'
const capabilities = { elicitation: {}, sampling: {} }

export async function connectPeer(port: number, era: Era): Promise<Peer> {
  if (era.carrier === 'sse') return open(new PairPeer(port, era), era)
  if (era.carrier === 'websocket') return open(new SocketPeer(port, era), era)
  if (!era.sessions) return new HttpPeer(port, era, undefined)
  const first = await new HttpPeer(port, era, undefined).say(hello(era, capabilities))
  const session = first.headers.get('mcp-session-id')
  if (session === undefined) throw new Error(`no session was given: ${first.status} ${first.text.slice(0, 200)}`)
  const peer = new HttpPeer(port, era, session)
  await peer.say({ jsonrpc: '2.0', method: 'notifications/initialized' })
  return peer
}

async function open(peer: LastingPeer, era: Era): Promise<Peer> {
  await peer.opened()
  if (!isModern(era)) {
    await peer.say(hello(era, capabilities), { awaits: 0 })
    await peer.say({ jsonrpc: '2.0', method: 'notifications/initialized' })
  }
  return peer
}

class HttpPeer implements Peer {
  readonly session: string | undefined
  readonly #port: number
  readonly #era: Era

  constructor(port: number, era: Era, session: string | undefined) {
    this.#port = port
    this.#era = era
    this.session = session
  }

  #post(body: string | Buffer | Frame, saying: Saying): Buffer {
    const mirror = { ...(isText(body) ? {} : mirrored(body)), ...saying }
    const lines = [...headLines(this.#era, this.session, mirror), ...(saying.lines ?? [])]
    return posted({ path: '/mcp', lines, body: isText(body) ? body : JSON.stringify(body) })
  }

  begin(body: Frame, saying: Saying = {}): Pending {
    const line = new Line(this.#port)
    line.write(this.#post(body, saying))
    const frames = (): readonly Frame[] => {
      const answer = parseAnswer(line.text)
      return framesOf(answer.body, answer.headers.get('content-type'))
    }
    return { frames, until: (fits, ms) => line.until(() => fits(frames()), ms), leave: () => line.end() }
  }

  async say(body: string | Buffer | Frame, saying: Saying = {}): Promise<Heard> {
    const answer = await fire(this.#port, this.#post(body, saying), saying.ms)
    return {
      ...answer,
      frames: framesOf(answer.body, answer.headers.get('content-type')),
      text: answer.body,
      closed: answer.status === 0,
    }
  }

  heard(): readonly Frame[] {
    return []
  }

  close(): void {}
}

function isText(body: string | Buffer | Frame): body is string | Buffer {
  return typeof body === 'string' || Buffer.isBuffer(body)
}

export function framesOf(text: string, type: string | undefined): Frame[] {
  try {
    if (type?.startsWith('text/event-stream') === true)
      return eventsOf(text).flatMap(({ data }) => (data === '' ? [] : [JSON.parse(data)]))
    return text === '' ? [] : [JSON.parse(text)].flat()
  } catch {
    return []
  }
}

export function eventsOf(text: string): { readonly event: string; readonly id: string; readonly data: string }[] {
  const member = (lines: readonly string[], name: string): string =>
    lines
      .filter(line => line.startsWith(`${name}:`))
      .map(line => line.slice(name.length + 1).trimStart())
      .join('\n')
  return text
    .split('\n\n')
    .slice(0, -1)
    .map(event => event.split('\n'))
    .map(lines => ({ event: member(lines, 'event'), id: member(lines, 'id'), data: member(lines, 'data') }))
}

/** A line that stays open. A ping after each thing said shows when everything before it was dealt with. */
abstract class LastingPeer implements Peer {
  readonly session = undefined
  readonly line: Line
  protected readonly era: Era
  #nextPing = 0

  constructor(port: number, era: Era) {
    this.line = new Line(port)
    this.era = era
  }

  abstract opened(): Promise<void>
  abstract heard(): readonly Frame[]
  /** Gives the answer of HTTP, where there is one. */
  protected abstract transmit(body: string | Buffer, saying: Saying): Promise<Answer>

  begin(body: Frame, saying: Saying = {}): Pending {
    const before = this.heard().length
    void this.transmit(JSON.stringify(body), saying)
    const frames = (): readonly Frame[] => this.heard().slice(before)
    return { frames, until: (fits, ms) => this.line.until(() => fits(frames()), ms), leave: () => {} }
  }

  async say(body: string | Buffer | Frame, saying: Saying = {}): Promise<Heard> {
    const before = this.heard().length
    const { status, body: told } = await this.transmit(isText(body) ? body : JSON.stringify(body), saying)
    const last = `flush-${this.#nextPing++}`
    await this.transmit(JSON.stringify(ping(this.era, last)), {})
    const wanted = saying.awaits === undefined ? [last] : [last, saying.awaits]
    await this.line.until(
      () => wanted.every(id => this.heard().some((frame, at) => at >= before && answers(frame, id))),
      saying.ms,
    )
    const frames = this.heard()
      .slice(before)
      .filter(frame => frame['id'] !== last)
    // What is refused by its status says why there and then.
    if (status >= 400) frames.push(...framesOf(told, undefined))
    return { status, headers: new Map(), frames, text: JSON.stringify(frames), closed: this.line.closed }
  }

  close(): void {
    this.line.end()
  }
}

function answers(frame: Frame, id: Id): boolean {
  return frame['id'] === id && frame['method'] === undefined
}

class PairPeer extends LastingPeer {
  #port: number
  #address = ''
  readonly #frames: Frame[] = []

  constructor(port: number, era: Era) {
    super(port, era)
    this.#port = port
  }

  get address(): string {
    return this.#address
  }

  async opened(): Promise<void> {
    this.line.write(openPair)
    await this.line.until(text => text.includes('event: endpoint') && text.includes('session='))
    this.#address = /data: (\S+)/.exec(this.line.text)?.[1] ?? ''
    if (this.#address === '') throw new Error(`the pair named no address: ${this.line.text.slice(0, 200)}`)
  }

  heard(): readonly Frame[] {
    const found = [...this.line.text.matchAll(/event: message\ndata: (.*)\n\n/g)]
    const last = found.at(-1)
    if (last !== undefined) this.line.text = this.line.text.slice(last.index + last[0].length)
    for (const [, data = ''] of found) this.#frames.push(JSON.parse(Buffer.from(data, 'latin1').toString('utf8')))
    return this.#frames
  }

  protected async transmit(body: string | Buffer, { lines = [] }: Saying): Promise<Answer> {
    const all = [...headLines(this.era, undefined, {}), ...lines]
    return fire(this.#port, posted({ path: this.#address, lines: all, body }))
  }
}

/** The address that the pair gave this peer. */
export function addressOf(peer: Peer): string {
  return peer instanceof PairPeer ? peer.address : '/mcp'
}

export const upgradeLines: readonly string[] = [
  'Upgrade: websocket',
  'Connection: Upgrade',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
]

export function upgradeText(lines: readonly string[] = upgradeLines, host = 'Host: 127.0.0.1'): string {
  return `GET /ws HTTP/1.1\r\n${[host, ...lines].join('\r\n')}\r\n\r\n`
}

export class SocketPeer extends LastingPeer {
  readonly #frames: Frame[] = []
  #parts: Buffer[] = []
  /** Codes and payloads of control frames that came. */
  readonly controls: { readonly opcode: number; readonly payload: Buffer }[] = []

  async opened(): Promise<void> {
    this.line.write(upgradeText())
    await this.line.until(text => text.includes('\r\n\r\n'))
    if (!this.line.text.startsWith('HTTP/1.1 101')) throw new Error(`no upgrade: ${this.line.text.slice(0, 200)}`)
    this.line.text = this.line.text.slice(this.line.text.indexOf('\r\n\r\n') + 4)
  }

  heard(): readonly Frame[] {
    const { frames, rest } = readFrames(Buffer.from(this.line.text, 'latin1'))
    if (frames.length > 0) this.line.text = rest.toString('latin1')
    for (const { opcode, payload, final } of frames) {
      if (opcode >= opcodes.close) this.controls.push({ opcode, payload })
      else {
        this.#parts.push(payload)
        if (final) this.#frames.push(...[JSON.parse(Buffer.concat(this.#parts.splice(0)).toString('utf8'))].flat())
      }
    }
    return this.#frames
  }

  /** The code of the server's farewell, once it has come. */
  sendShutdown(): number | undefined {
    this.heard()
    const close = this.controls.find(({ opcode }) => opcode === opcodes.close)
    return close === undefined || close.payload.length < 2 ? undefined : close.payload.readUInt16BE(0)
  }

  protected transmit(body: string | Buffer): Promise<Answer> {
    this.line.write(wsFrame(opcodes.text, body))
    return Promise.resolve(noAnswer)
  }
}
