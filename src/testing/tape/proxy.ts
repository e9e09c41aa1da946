/**
 * A recording proxy: stands between any client and any server, passes every frame on as it came, and writes it down. Where both ends are
 * HTTP the exchanges themselves pass (`http-proxy.ts`); else frames pass between a connection on either side.
 */
import { type Command, openerOf, type Target } from '../../client/target.ts'
import { redact } from '../../core/redact.ts'
import { clientLimits } from '../../engine/limits.ts'
import type { Connection, Sink } from '../../jsonrpc/connection.ts'
import { failureFrame } from '../../jsonrpc/message.ts'
import { Courier } from './courier.ts'
import { type FrontOptions, frontFrameBytes, openFront } from './front.ts'
import { openHttpProxy } from './http-proxy.ts'
import { Outstanding } from './outstanding.ts'
import { type RecordOptions, TapeWriter } from './writer.ts'

export type ProxyTarget = Target | (() => Connection)

type OnTrouble = (error: Error) => void

export interface ProxyOptions extends RecordOptions {
  /** The file that is written. */
  readonly file: string
  /** Where the client comes in: `{ stdio: true }`, or a port, by default any free one. */
  readonly client?: FrontOptions
  /** The server speaks by the pair of endpoints of 2024-11-05, and the client on stdio. Default false. */
  readonly pair?: boolean
  /** Told when a server cannot be reached, or goes before its client does. Default: nobody is. */
  readonly onTrouble?: OnTrouble
  /** Headers added to what goes to the server over HTTP; never written down. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface RecordingProxy {
  /** Where the client connects; undefined on stdio. */
  readonly url: string | undefined
  /** Settles when there can be no more: the client's standard input has ended. */
  readonly over: Promise<void>
  /** Lets go of both sides, then of the file. */
  close(): Promise<void>
}

/** @example const proxy = await startRecording('https://example.com/mcp', { file: 'session.tape', client: { port: 7000 } }) */
export async function startRecording(target: ProxyTarget, options: ProxyOptions): Promise<RecordingProxy> {
  const { file, client = {}, headers, pair, onTrouble = () => {}, ...more } = options
  const writer = new TapeWriter(file, { target: labelOf(target), ...more })
  const proxy = await opened()
  try {
    // A tape that was there is lost only to one that can be made.
    writer.begin()
    return proxy
  } catch (error) {
    await proxy.close()
    throw error
  }

  async function opened(): Promise<RecordingProxy> {
    if (client.stdio === true || !isHttp(target))
      return startPiping(client, near => new Pipe(near, openConnection(target, { headers, pair }), writer, onTrouble), writer)
    const proxy = await openHttpProxy(new URL(target), { ...client, headers, writer, onTrouble })
    return { ...proxy, close: () => proxy.close().finally(() => writer.close()) }
  }
}

async function startPiping(client: FrontOptions, join: (near: Connection) => Pipe, writer: TapeWriter): Promise<RecordingProxy> {
  const pipes = new Set<Pipe>()
  const front = await openFront(client, near => {
    const pipe = join(near)
    pipes.add(pipe)
    void pipe.over.then(() => pipes.delete(pipe))
  })
  const over = front.over.then(async () => {
    await Promise.all([...pipes].map(pipe => pipe.over))
  })
  return {
    url: front.url,
    over,
    close: async () => {
      await front.close()
      await Promise.all([...pipes].map(pipe => pipe.close()))
      writer.close()
    },
  }
}

/** One client's connection and the server's that was opened for it. */
class Pipe {
  readonly over: Promise<void>
  readonly #near: Connection
  readonly #far: Promise<Courier>
  readonly #outstanding = new Outstanding()
  #closing: Promise<void> | undefined = undefined
  #resolve: () => void

  constructor(near: Connection, connection: Promise<Connection>, writer: TapeWriter, onTrouble: OnTrouble) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.over = promise
    this.#resolve = resolve
    this.#near = near
    const tape = writer.conversation(near.carrier)
    const ended = (reason?: Error): void => {
      if (this.#closing !== undefined) return
      tape.closed(reason?.message)
      void this.close()
    }
    const lost = (reason?: Error): void => {
      if (reason !== undefined && this.#closing === undefined) onTrouble(reason)
      ended(reason)
    }
    this.#far = connection.then(async opened => {
      const courier = new Courier(opened)
      await courier.start({
        frame: (text, status) => {
          tape.frame('server', text, status === undefined || status === 200 ? {} : { http: { status } })
          void Promise.resolve(near.send(text)).catch(() => {})
          this.#outstanding.answered(text)
        },
        fault: fault => lost(new Error(fault.message)),
        closed: lost,
      })
      return courier
    })
    this.#far.catch(lost)
    void near.start(this.#clientSink(text => tape.frame('client', text), ended))
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  #clientSink(note: (text: string) => void, ended: (reason?: Error) => void): Sink {
    return {
      frame: text => {
        note(text)
        this.#outstanding.asked(text)
        // Frames that come before the server is there wait for it, in order.
        void this.#far.then(far => far.send(text)).catch(() => {})
      },
      fault: ({ message }) => void this.#near.send(failureFrame(undefined, { code: -32700, message })),
      closed: ended,
      quiet: () => this.#outstanding.quiet(),
    }
  }

  async #close(): Promise<void> {
    this.#outstanding.end()
    await this.#near.close().catch(() => {})
    await this.#far.then(far => far.close()).catch(() => {})
    this.#resolve()
  }
}

/** `pair`: over HTTP by the two endpoints of 2024-11-05. */
export async function openConnection(
  target: ProxyTarget,
  { headers, pair }: { readonly headers?: ProxyOptions['headers']; readonly pair?: boolean | undefined } = {},
): Promise<Connection> {
  if (typeof target === 'function') return target()
  const opener = openerOf(target, { headers, limits: { ...clientLimits, frameBytes: frontFrameBytes } })
  return pair === true && opener.openOldPair !== undefined ? opener.openOldPair() : opener.open()
}

function isHttp(target: ProxyTarget): target is string | URL {
  return (typeof target === 'string' || target instanceof URL) && /^https?:/.test(String(target))
}

function labelOf(target: ProxyTarget): string {
  if (typeof target === 'string' || target instanceof URL) {
    const url = new URL(target)
    return `${url.origin}${url.pathname}`
  }
  return typeof target === 'object' && 'command' in target ? wordsOf(target) : 'a connection'
}

/** Arguments may hold a key. */
function wordsOf({ command, args = [] }: Command): string {
  return redact([command, ...args].join(' '))
}
