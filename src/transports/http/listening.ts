/**
 * The options and the result of a listener. Separate from the listener itself, so that these types can be imported without the
 * types of Node.
 */
import type { Principal } from '../../jsonrpc/connection.ts'
import type { Awaitable } from '../../jsonrpc/message.ts'
import type { HttpOptions } from './endpoint.ts'

/** The content of a page. */
interface PageAnswer {
  /** The HTTP status. */
  readonly status: number
  /** The content type. */
  readonly type: string
  /** The body. */
  readonly body: string
}

/** Who requests a page. */
export interface PageReader {
  /** The principal, if the request has a valid token. */
  readonly principal: Principal | undefined
  /** Returns a request header by its lower-case name. */
  header(name: string): string | undefined
}

/** A page next to the endpoint that anyone may read. */
export interface OpenPage {
  /** Returns the content for one request. */
  read(reader: PageReader): Awaitable<PageAnswer>
}

/** Options of an HTTP listener. */
export interface ListenOptions extends HttpOptions {
  /** The port; 0 takes any free port. Default 0. */
  readonly port?: number
  /** The address to listen at. Default 127.0.0.1, which only this machine can reach. */
  readonly host?: string
  /** The path of Streamable HTTP. Default `/mcp`. */
  readonly path?: string
  /** The path of HTTP+SSE (2024-11-05); messages are posted to `<ssePath>/message`. Default: not served. */
  readonly ssePath?: string
  /** The path of WebSockets. Default: not served. */
  readonly wsPath?: string
  /** Further pages by path, for example a status page. Everybody who reaches the listener can read them. Default: none. */
  readonly pages?: ReadonlyMap<string, OpenPage>
  /** How long `close()` waits for running requests, in milliseconds. Default 5,000. */
  readonly closeMs?: number
  /** Called with failures that concern no single request, such as too many open files. Default: written to the log. */
  readonly onError?: (error: Error) => void
}

/** An open listener. */
export interface Listening {
  /** The URL of the endpoint, with the port that was chosen. */
  readonly url: string
  /** The port that was chosen. */
  readonly port: number
  /** Stops accepting requests, ends streams without a pending answer, waits for answers in progress, then closes the rest. */
  close(): Promise<void>
}
