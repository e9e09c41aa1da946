/**
 * The options and the result of a listener. Separate from the listener itself, so that these types can be imported without the
 * types of Node.
 */
import type { Principal } from '../../jsonrpc/connection.ts'
import type { Awaitable } from '../../jsonrpc/message.ts'
import type { HttpOptions } from './endpoint.ts'

/** The content of a page. */
interface PageAnswer {
  readonly status: number
  /** The content type. */
  readonly type: string
  readonly body: string
}

/** Who requests a page. */
export interface PageReader {
  /** The principal, if the request has a valid token. */
  readonly principal: Principal | undefined
  header(name: string): string | undefined
}

/** A page beside the endpoint that anyone may read. */
export interface OpenPage {
  read(reader: PageReader): Awaitable<PageAnswer>
}

/** The options of a listener. */
export interface ListenOptions extends HttpOptions {
  /** 0, the default, takes any free port. */
  readonly port?: number
  /** Default 127.0.0.1: reachable from this machine only. */
  readonly host?: string
  /** Where Streamable HTTP is served. Default /mcp. */
  readonly path?: string
  /** Where HTTP+SSE (2024-11-05) is served; messages are posted to `<ssePath>/message`. Default: nowhere. */
  readonly ssePath?: string
  /** Where WebSockets are accepted. Default: nowhere. */
  readonly wsPath?: string
  /** Pages beside the endpoint, by path. Anyone who reaches the listener may read them. */
  readonly pages?: ReadonlyMap<string, OpenPage>
  /** How long close() waits for answers in progress. Default 5 s. */
  readonly closeMs?: number
  /** Receives failures that concern no single request, such as running out of file descriptors. */
  readonly onError?: (error: Error) => void
}

/** An open listener. */
export interface Listening {
  readonly url: string
  readonly port: number
  /** Stops accepting requests, ends streams without a pending answer, waits for answers in progress, then closes the rest. */
  close(): Promise<void>
}
