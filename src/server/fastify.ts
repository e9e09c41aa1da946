/** Mounts a server in a Fastify app: `app.register(mcp, { server })`. */
import type { FastifyPluginCallback } from 'fastify'
import { nodeHttpHandler } from '../transports/http/node.ts'
import type { FetchOptions } from './serve.ts'
import type { Server } from './server.ts'

export interface McpPluginOptions extends FetchOptions {
  readonly server: Server
  /** Default /mcp. */
  readonly path?: string
}

/** @example app.register(mcp, { server }) */
export const mcp: FastifyPluginCallback<McpPluginOptions> = (app, { server, path = '/mcp', ...options }, done) => {
  const handle = nodeHttpHandler(server.door, options)
  // The server reads the body itself, with its own limits.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, next) => next(null))
  app.all(path, (request, reply) => {
    reply.hijack()
    handle(request.raw, reply.raw)
  })
  done()
}
