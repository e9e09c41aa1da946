/** What a listener can be told, and what it gives. Apart from the listener itself, so that these types need none of Node's. */
import type { Principal } from '../../jsonrpc/connection.ts'
import type { Awaitable } from '../../jsonrpc/message.ts'
import type { HttpOptions } from './endpoint.ts'

interface PageAnswer {
  readonly status: number
  readonly type: string
  readonly body: string
}

/** Who reads a page. */
export interface PageReader {
  /** Who reads it, where that one has shown a token that may call. */
  readonly principal: Principal | undefined
  header(name: string): string | undefined
}

/** A page beside the endpoint. */
export interface OpenPage {
  read(reader: PageReader): Awaitable<PageAnswer>
}

/** What a listener can be told. */
export interface ListenOptions extends HttpOptions {
  /** 0, the default, takes any free port. */
  readonly port?: number
  /** Default 127.0.0.1: reachable from this machine only. */
  readonly host?: string
  /** Where Streamable HTTP is served. Default /mcp. */
  readonly path?: string
  /** Where the pair of 2024-11-05 is served; messages are posted to `<ssePath>/message`. Default: nowhere. */
  readonly ssePath?: string
  /** Where WebSockets are taken. Default: nowhere. */
  readonly wsPath?: string
  /** Pages beside the endpoint, by their paths, that whoever reaches the listener may read. */
  readonly pages?: ReadonlyMap<string, OpenPage>
  /** How long close() waits for answers under way. Default 5 s. */
  readonly closeMs?: number
  /** Hears of failures that concern no single request, such as running out of file handles. */
  readonly onError?: (error: Error) => void
}

/** A listener that is open. */
export interface Listening {
  readonly url: string
  readonly port: number
  /** Stops taking requests, lets listeners go, waits for answers under way, then closes what is left. */
  close(): Promise<void>
}
