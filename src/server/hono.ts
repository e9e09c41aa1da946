/** Mounts a server in a Hono app: `app.all('/mcp', mcp(server))`, on any runtime that Hono runs on. */
import type { FetchOptions } from './serve.ts'
import type { Server } from './server.ts'

/** A request handler for Hono. */
export type HonoHandler = (context: {
  /** The request of Hono. */
  readonly req: {
    /** The web-standard request. */
    readonly raw: Request
  }
}) => Promise<Response>

/**
 * Returns a handler that serves a server in a Hono app. With `auth`, mount it also under the path of the metadata document:
 * `app.all('/.well-known/oauth-protected-resource/*', handle)`; with `references`, also under `/mcp/references/*`.
 * @example app.all('/mcp', mcp(server))
 */
export function mcp(server: Server, options?: FetchOptions): HonoHandler {
  const handle = server.fetchWith(options ?? {})
  return context => handle(context.req.raw)
}
