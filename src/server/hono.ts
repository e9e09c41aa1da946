/** Mounts a server in a Hono app: `app.all('/mcp', mcp(server))`, on any runtime that Hono runs on. */
import type { FetchOptions } from './serve.ts'
import type { Server } from './server.ts'

/** As Hono calls it. Its types are not named, so that ours can be read where it is not installed. */
export type HonoHandler = (context: { readonly req: { readonly raw: Request } }) => Promise<Response>

/**
 * With `auth` mount it also where clients look for the metadata: `app.all('/.well-known/oauth-protected-resource/*', handle)`;
 * with `references` also below: `app.all('/mcp/references/*', handle)`.
 * @example app.all('/mcp', mcp(server))
 */
export function mcp(server: Server, options?: FetchOptions): HonoHandler {
  const handle = server.fetchWith(options ?? {})
  return context => handle(context.req.raw)
}
