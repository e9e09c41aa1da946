/** For the tests of this room: a server in memory that says exactly what a test wants it to say, and writes down what it hears. */
import type { Connection } from '../../src/jsonrpc/connection.ts'
import { type Awaitable, isRecord } from '../../src/jsonrpc/message.ts'
import type { RevisionId } from '../../src/revisions/index.ts'
import { memoryPair } from '../../src/transports/memory.ts'

export type Frame = Readonly<Record<string, unknown>>

/** Given instead of a result: no answer at all. */
export const silence = Symbol('silence')

/** Thrown instead of a result: a JSON-RPC error. */
export class Refusal extends Error {
  readonly body: Frame

  constructor(code: unknown, message: unknown = 'refused', data?: unknown) {
    super(String(message))
    this.body = { code, message, ...(data === undefined ? {} : { data }) }
  }
}

export type Answer = (params: Frame, request: Frame) => unknown
export type Script = Readonly<Record<string, Answer>>

export class ScriptedServer {
  /** The client's end. */
  readonly connection: Connection
  /** All that the client has sent, in order. */
  readonly heard: Frame[] = []
  closed = false
  readonly #far: Connection
  readonly #script: Map<string, Answer>
  #wake: (() => void)[] = []
  #asked = 0

  constructor(script: Script) {
    const [near, far] = memoryPair()
    this.connection = near
    this.#far = far
    this.#script = new Map(Object.entries(script))
    void far.start({
      frame: text => this.#take(JSON.parse(text)),
      fault: () => {},
      closed: () => {
        this.closed = true
        this.#wakeReaders()
      },
    })
  }

  /** What the client has sent with this method so far. */
  of(method: string): Frame[] {
    return this.heard.filter(frame => frame['method'] === method)
  }

  /** The params of what the client has sent with this method so far, without `_meta`. */
  params(method: string): Frame[] {
    return this.of(method).map(({ params }) => {
      const { _meta, ...rest } = (params ?? {}) as Frame
      return rest
    })
  }

  /** From now on a method is answered so. */
  on(method: string, answer: Answer): void {
    this.#script.set(method, answer)
  }

  /** Sends a message as it is. */
  send(message: Frame): void {
    this.sendText(JSON.stringify({ jsonrpc: '2.0', ...message }))
  }

  sendText(text: string): void {
    void Promise.resolve(this.#far.send(text)).catch(() => {})
  }

  /** The memory pair delivers within the turn: once this is over the client has heard it. */
  async tell(method: string, params: Frame = {}): Promise<void> {
    this.send({ method, params })
    await new Promise(setImmediate)
  }

  /** Asks the client and gives its whole answer. */
  async ask(method: string, params: Frame = {}): Promise<Frame> {
    const id = `s${++this.#asked}`
    this.send({ id, method, params })
    return this.until(() => this.heard.find(frame => frame['id'] === id && frame['method'] === undefined))
  }

  /** Waits until the client has sent `count` messages with this method, and gives the last of them. */
  saw(method: string, count = 1): Promise<Frame> {
    return this.until(() => this.of(method)[count - 1])
  }

  async until<T>(look: () => T | undefined): Promise<T> {
    for (;;) {
      const found = look()
      if (found !== undefined) return found
      if (this.closed) throw new Error('The client has closed the connection')
      await new Promise<void>(resolve => this.#wake.push(resolve))
    }
  }

  close(): Promise<void> {
    return this.#far.close()
  }

  #take(frame: Frame): void {
    this.heard.push(frame)
    this.#wakeReaders()
    const answer = this.#script.get(String(frame['method']))
    if (frame['method'] !== undefined && frame['id'] !== undefined) void this.#answer(frame, answer)
    else answer?.(isRecord(frame['params']) ? frame['params'] : {}, frame)
  }

  async #answer(request: Frame, answer: Answer | undefined): Promise<void> {
    const { id, method, params } = request
    try {
      if (answer === undefined) throw new Refusal(-32601, `no ${String(method)} here`)
      const result = await (answer(isRecord(params) ? params : {}, request) as Awaitable<unknown>)
      if (result !== silence) this.send({ id, result })
    } catch (error) {
      this.send({ id, error: error instanceof Refusal ? error.body : { code: -32603, message: String(error) } })
    }
  }

  #wakeReaders(): void {
    for (const wake of this.#wake.splice(0)) wake()
  }
}

/** Speaks the stateless wire. */
export function modernServer(script: Script = {}, capabilities: Frame = {}): ScriptedServer {
  return new ScriptedServer({ 'server/discover': () => discovery(capabilities), ...script })
}

/** Speaks a wire with a handshake, and no other. */
export function sessionServer(
  script: Script = {},
  capabilities: Frame = {},
  protocolVersion: RevisionId = '2025-11-25',
): ScriptedServer {
  return new ScriptedServer({ initialize: () => hello(capabilities, protocolVersion), ...script })
}

export function discovery(capabilities: Frame = {}, supportedVersions: readonly string[] = ['2026-07-28']): Frame {
  return { resultType: 'complete', supportedVersions, capabilities, ttlMs: 0, cacheScope: 'private' }
}

export function hello(capabilities: Frame = {}, protocolVersion = '2025-11-25'): Frame {
  return { protocolVersion, capabilities, serverInfo: { name: 'scripted', version: '1' } }
}

/** A result of `tools/call`. */
export function said(text: string, more: Frame = {}): Frame {
  return { resultType: 'complete', content: [{ type: 'text', text }], ...more }
}

/** A result of `tools/list`. */
export function toolList(...tools: readonly Frame[]): Frame {
  return { resultType: 'complete', tools: tools.map(tool => ({ inputSchema: { type: 'object' }, ...tool })) }
}
