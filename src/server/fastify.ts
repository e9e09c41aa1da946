/** Mounts a server in a Fastify app: `app.register(mcp, { server })`. */
import type { FastifyPluginCallback } from 'fastify'
import { shownBeside } from './documents.ts'
import { nodeHandler } from './node-handler.ts'
import type { FetchOptions } from './serve.ts'
import type { Server } from './server.ts'

export interface McpPluginOptions extends FetchOptions {
  readonly server: Server
  /** Default /mcp. */
  readonly path?: string
}

/** @example app.register(mcp, { server }) */
export const mcp: FastifyPluginCallback<McpPluginOptions> = (app, { server, path = '/mcp', ...options }, done) => {
  const handle = nodeHandler(server, options)
  // The server reads the body itself, with its own limits.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, next) => next(null))
  const metadata = '/.well-known/oauth-protected-resource'
  const { document, downloads } = shownBeside(server.engine)
  const paths = [
    path,
    ...(options.auth === undefined || options.auth === 'none' ? [] : [metadata, `${metadata}/*`]),
    ...(document === undefined ? [] : [`${path}${document.path}`]),
    ...(downloads === undefined ? [] : [`${path}${downloads.path}*`]),
  ]
  for (const each of paths) {
    app.all(each, (request, reply) => {
      reply.hijack()
      handle(request.raw, reply.raw)
    })
  }
  done()
}
