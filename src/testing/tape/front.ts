/** Where clients come in: standard input and output for one of them, or a port for many. Each conversation is one connection. */
import type { Readable, Writable } from 'node:stream'
import type { Connection } from '../../jsonrpc/connection.ts'
import { listenHttp } from '../../transports/http/listen.ts'
import { stdioServerConnection } from '../../transports/stdio/server.ts'
import { FrontDoor } from './front-door.ts'

export type FrontOptions =
  | { readonly stdio: true; readonly input?: NodeReadable; readonly output?: NodeWritable }
  | { readonly stdio?: false; readonly port?: number; readonly host?: string; readonly path?: string }

/** A tape stands between others: what they let pass it does too. */
export const frontFrameBytes = 64 * 1024 * 1024

export interface Front {
  /** Where it listens; undefined on stdio. */
  readonly url: string | undefined
  /** Settles when no client can come any more: the end of standard input. */
  readonly over: Promise<void>
  close(): Promise<void>
}

/** `accept` starts each connection that it is given. */
export async function openFront(options: FrontOptions, accept: (connection: Connection) => void): Promise<Front> {
  if (options.stdio === true) return stdioFront(options, accept)
  const { port, host, path } = options
  const door = new FrontDoor(accept)
  const listening = await listenHttp(door, {
    limits: { frameBytes: frontFrameBytes },
    ssePath: '/sse',
    closeMs: 500,
    ...(port !== undefined && { port }),
    ...(host !== undefined && { host }),
    ...(path !== undefined && { path }),
  })
  return {
    url: listening.url,
    over: new Promise(() => {}),
    close: async () => {
      await door.close()
      await listening.close()
    },
  }
}

function stdioFront(
  { input, output }: { input?: NodeReadable; output?: NodeWritable },
  accept: (connection: Connection) => void,
): Front {
  const connection = stdioServerConnection({
    limits: { frameBytes: frontFrameBytes },
    ...(input && { input: input as Readable }),
    ...(output && { output: output as Writable }),
  })
  const { promise, resolve } = Promise.withResolvers<void>()
  accept({
    ...delegate(connection),
    start: sink =>
      connection.start({
        frame: text => sink.frame(text),
        fault: fault => sink.fault(fault),
        quiet: () => sink.quiet?.() ?? Promise.resolve(),
        closed: reason => {
          sink.closed(reason)
          resolve()
        },
      }),
  })
  return { url: undefined, over: promise, close: () => connection.close() }
}

function delegate(connection: Connection): Connection {
  return {
    carrier: connection.carrier,
    start: sink => connection.start(sink),
    send: (text, outgoing) => connection.send(text, outgoing),
    close: () => connection.close(),
  }
}

/**
 * As much of Node's streams as signatures have to name, so that our types can be read without those of Node. What is given is the
 * real thing, of `node:stream`.
 */

interface NodeReadable {
  readonly readable: boolean
  pause(): unknown
  resume(): unknown
  destroy(): unknown
}

interface NodeWritable {
  readonly writable: boolean
  write(chunk: string | Uint8Array): boolean
  end(): unknown
  destroy(): unknown
}
