/** Mounts a server in a Fastify app: `app.register(mcp, { server })`. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { nodeHandler } from './node-handler.ts'
import type { FetchOptions, NodeRequest, NodeResponse } from './serve.ts'
import type { Server } from './server.ts'
import { extraRoutesOf } from './streams.ts'

/** Options of the Fastify plugin. */
export interface McpPluginOptions extends FetchOptions {
  /** The server to mount. */
  readonly server: Server
  /** The path of the endpoint. Default `/mcp`. */
  readonly path?: string
}

/** A request of Fastify. */
interface RawRequest {
  /** The request of Node. */
  readonly raw: NodeRequest
}

/** A reply of Fastify. */
interface RawReply {
  /** The response of Node. */
  readonly raw: NodeResponse
  /** Tells Fastify that the response is sent elsewhere. */
  hijack(): unknown
}

/** The part of a Fastify app that the plugin uses. */
export interface FastifyApp {
  /** Removes the parsers of request bodies in the scope of the plugin. */
  removeAllContentTypeParsers(): unknown
  /** Adds a parser of request bodies. */
  addContentTypeParser(
    type: string,
    parser: (request: unknown, payload: unknown, done: (error: Error | null, body?: unknown) => void) => void,
  ): unknown
  /** Adds a route for all methods. */
  all(path: string, handler: (request: RawRequest, reply: RawReply) => void): unknown
}

/**
 * The Fastify plugin that mounts a server at `path`. The server reads request bodies itself, with its own limits.
 * @example app.register(mcp, { server })
 */
export function mcp(
  app: FastifyApp,
  { server, path = '/mcp', ...options }: McpPluginOptions,
  done: (error?: Error) => void,
): void {
  const handle = nodeHandler(server, options)
  // The server reads the body itself, with its own limits.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, next) => next(null))
  const metadata = '/.well-known/oauth-protected-resource'
  const { document, downloads } = extraRoutesOf(server.engine)
  const paths = [
    path,
    ...(options.auth === undefined || options.auth === 'none' ? [] : [metadata, `${metadata}/*`]),
    ...(document === undefined ? [] : [`${path}${document.path}`]),
    ...(downloads === undefined ? [] : [`${path}${downloads.path}*`]),
  ]
  for (const each of paths) {
    app.all(each, (request, reply) => {
      reply.hijack()
      handle(request.raw as IncomingMessage, reply.raw as ServerResponse)
    })
  }
  done()
}
