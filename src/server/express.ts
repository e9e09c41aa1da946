/** Mounts a server in an Express app: `app.all('/mcp', mcp(server))`, before or after a JSON body parser. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { nodeHandler } from './node-handler.ts'
import type { FetchOptions, NodeRequest, NodeResponse } from './serve.ts'
import type { Server } from './server.ts'

/** A request handler for Express. */
export type ExpressHandler = (
  req: NodeRequest & {
    /** The body, if a parser of the app has read it already. */
    readonly body?: unknown
  },
  res: NodeResponse,
) => void

/**
 * Returns a handler that serves a server in an Express app. With `auth`, mount it also under the path of the metadata document;
 * with `references`, also under `/mcp/references/{*name}`.
 * @example app.all(['/mcp', '/.well-known/oauth-protected-resource{/*path}'], mcp(server, { auth: oauth({ issuer, resource }) }))
 */
export function mcp(server: Server, options?: FetchOptions): ExpressHandler {
  const handle = nodeHandler(server, options)
  return (req, res) => handle(req as IncomingMessage, res as ServerResponse, req.body)
}
