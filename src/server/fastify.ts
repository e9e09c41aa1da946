/** Mounts a server in a Fastify app: `app.register(mcp, { server })`. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { nodeHandler } from './node-handler.ts'
import type { FetchOptions, NodeRequest, NodeResponse } from './serve.ts'
import type { Server } from './server.ts'
import { extraRoutesOf } from './streams.ts'

/** What the plugin is registered with. */
export interface McpPluginOptions extends FetchOptions {
  /** The server to mount. */
  readonly server: Server
  /** Default /mcp. */
  readonly path?: string
}

interface RawRequest {
  readonly raw: NodeRequest
}

interface RawReply {
  readonly raw: NodeResponse
  hijack(): unknown
}

/** What is used of a Fastify app. Its types are not named, so that ours can be read where it is not installed. */
export interface FastifyApp {
  removeAllContentTypeParsers(): unknown
  addContentTypeParser(
    type: string,
    parser: (request: unknown, payload: unknown, done: (error: Error | null, body?: unknown) => void) => void,
  ): unknown
  all(path: string, handler: (request: RawRequest, reply: RawReply) => void): unknown
}

/** @example app.register(mcp, { server }) */
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
