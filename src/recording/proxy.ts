/**
 * A recording proxy: stands between any client and any server, passes every frame on as it came, and writes it down. Where both ends are
 * HTTP the exchanges themselves pass (`http-proxy.ts`); else frames pass between a connection on either side.
 */
import type { Connection, Sink } from '../jsonrpc/connection.ts'
import { failureFrame } from '../jsonrpc/message.ts'
import { FrameSender, UnansweredRequests } from './frame-sender.ts'
import { openHttpProxy } from './http-proxy.ts'
import { type ClientListener, type ClientListenerOptions, listenForClients } from './listener.ts'
import { RecordingWriter, type RecordOptions } from './writer.ts'

/** Called with a failure of the proxy. */
type OnTrouble = (error: Error) => void

/** The server behind a proxy. */
interface ProxiedServer {
  /** Opens a connection to it. */
  open(): Promise<Connection>
  /** Its address, where it is reached over HTTP. */
  readonly url?: URL | undefined
}

/** Options of a recording proxy. */
export interface ProxyOptions extends RecordOptions {
  /** The file to write. */
  readonly file: string
  /** Where the client connects: `{ stdio: true }`, or a port. Default: any free port. */
  readonly client?: ClientListenerOptions
  /** Whether the server speaks HTTP+SSE (2024-11-05). The client then connects by stdio. Default false. */
  readonly pair?: boolean
  /** Called if a server cannot be reached, or disconnects before its client. Default: not called. */
  readonly onTrouble?: OnTrouble
  /** Headers that are added to HTTP requests to the server, and not recorded. Default: none. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A recording proxy. Closing it disconnects both sides and closes the file. */
export type RecordingProxy = ClientListener

/** Starts a proxy before a server. */
export async function startProxy({ open, url }: ProxiedServer, options: ProxyOptions): Promise<RecordingProxy> {
  const { file, client = {}, headers, onTrouble = () => {} } = options
  const writer = new RecordingWriter(file, options)
  const opened =
    client.stdio === true || url === undefined
      ? await startPiping(client, near => new Pipe(near, open(), writer, onTrouble))
      : await openHttpProxy(url, { ...client, headers, writer, onTrouble })
  const proxy = { ...opened, close: () => opened.close().finally(() => writer.close()) }
  try {
    // A file that was there is lost only to one that can be made.
    writer.begin()
    return proxy
  } catch (error) {
    await proxy.close()
    throw error
  }
}

/** Pipes frames between each client and its own connection to the server. */
async function startPiping(client: ClientListenerOptions, join: (near: Connection) => Pipe): Promise<ClientListener> {
  const pipes = new Set<Pipe>()
  const listener = await listenForClients(client, near => {
    const pipe = join(near)
    pipes.add(pipe)
    void pipe.over.then(() => pipes.delete(pipe))
  })
  const over = listener.over.then(async () => {
    await Promise.all([...pipes].map(pipe => pipe.over))
  })
  return {
    url: listener.url,
    over,
    close: async () => {
      await listener.close()
      await Promise.all([...pipes].map(pipe => pipe.close()))
    },
  }
}

/** One client's connection and the server's that was opened for it. */
class Pipe {
  readonly over: Promise<void>
  readonly #near: Connection
  readonly #far: Promise<FrameSender>
  readonly #unanswered = new UnansweredRequests()
  #closing: Promise<void> | undefined = undefined
  #resolve: () => void

  constructor(near: Connection, connection: Promise<Connection>, writer: RecordingWriter, onTrouble: OnTrouble) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.over = promise
    this.#resolve = resolve
    this.#near = near
    const lines = writer.connection(near.carrier)
    const ended = (reason?: Error): void => {
      if (this.#closing !== undefined) return
      lines.closed(reason?.message)
      void this.close()
    }
    const lost = (reason?: Error): void => {
      if (reason !== undefined && this.#closing === undefined) onTrouble(reason)
      ended(reason)
    }
    this.#far = connection.then(async opened => {
      const sender = new FrameSender(opened)
      await sender.start({
        frame: (text, status) => {
          lines.frame('server', text, status === undefined || status === 200 ? {} : { http: { status } })
          void Promise.resolve(near.send(text)).catch(() => {})
          this.#unanswered.answered(text)
        },
        fault: fault => lost(new Error(fault.message)),
        closed: lost,
      })
      return sender
    })
    this.#far.catch(lost)
    void near.start(this.#clientSink(text => lines.frame('client', text), ended))
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  #clientSink(note: (text: string) => void, ended: (reason?: Error) => void): Sink {
    return {
      frame: text => {
        note(text)
        this.#unanswered.asked(text)
        // Frames that come before the server is there wait for it, in order.
        void this.#far.then(far => far.send(text)).catch(() => {})
      },
      fault: ({ message }) => void this.#near.send(failureFrame(undefined, { code: -32700, message })),
      closed: ended,
      quiet: () => this.#unanswered.quiet(),
    }
  }

  /** Closes both sides. */
  async #close(): Promise<void> {
    this.#unanswered.end()
    await this.#near.close().catch(() => {})
    await this.#far.then(far => far.close()).catch(() => {})
    this.#resolve()
  }
}
