/** Mounts a server in an Express app: `app.all('/mcp', mcp(server))`, before or after a JSON body parser. */
import type { RequestHandler } from 'express'
import type { HttpOptions } from '../transports/http/endpoint.ts'
import { nodeHttpHandler } from '../transports/http/node.ts'
import type { Server } from './server.ts'

/** @example app.all('/mcp', mcp(server)) */
export function mcp(server: Server, options?: Pick<HttpOptions, 'hosts' | 'origins'>): RequestHandler {
  const handle = nodeHttpHandler(server.door, options)
  return (req, res) => handle(req, res, req.body)
}
