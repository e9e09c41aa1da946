/** Mounts a server in an Express app: `app.all('/mcp', mcp(server))`, before or after a JSON body parser. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { nodeHandler } from './node-handler.ts'
import type { FetchOptions, NodeRequest, NodeResponse } from './serve.ts'
import type { Server } from './server.ts'

/** As Express calls it. Its types are not named, so that ours can be read where it is not installed. */
export type ExpressHandler = (req: NodeRequest & { readonly body?: unknown }, res: NodeResponse) => void

/**
 * With `auth` mount it also where clients look for the metadata, with `references` also below: `/mcp/references/{*name}`.
 * @example app.all(['/mcp', '/.well-known/oauth-protected-resource{/*path}'], mcp(server, { auth: oauth({ issuer, resource }) }))
 */
export function mcp(server: Server, options?: FetchOptions): ExpressHandler {
  const handle = nodeHandler(server, options)
  return (req, res) => handle(req as IncomingMessage, res as ServerResponse, req.body)
}
