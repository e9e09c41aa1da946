/** Mounts a server in a Hono app: `app.all('/mcp', mcp(server))`, on any runtime that Hono runs on. */
import type { Handler } from 'hono'
import type { FetchOptions } from './serve.ts'
import type { Server } from './server.ts'

/**
 * With `auth` mount it also where clients look for the metadata: `app.all('/.well-known/oauth-protected-resource/*', handle)`;
 * with `references` also below: `app.all('/mcp/references/*', handle)`.
 * @example app.all('/mcp', mcp(server))
 */
export function mcp(server: Server, options?: FetchOptions): Handler {
  const handle = server.fetchWith(options ?? {})
  return context => handle(context.req.raw)
}
