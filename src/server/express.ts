/** Mounts a server in an Express app: `app.all('/mcp', mcp(server))`, before or after a JSON body parser. */
import type { RequestHandler } from 'express'
import { nodeHttpHandler } from '../transports/http/node.ts'
import type { FetchOptions } from './serve.ts'
import type { Server } from './server.ts'

/** @example app.all('/mcp', mcp(server)) */
export function mcp(server: Server, options?: FetchOptions): RequestHandler {
  const handle = nodeHttpHandler(server.door, options)
  return (req, res) => handle(req, res, req.body)
}
