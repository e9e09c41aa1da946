/** A server as a handler for frameworks that stand on node:http. */
import { createAuthorizer } from '../auth/resource/authorizer.ts'
import { type NodeHttpHandler, nodeHttpHandler } from '../transports/http/node.ts'
import { storeLogs } from '../transports/http/store-logs.ts'
import { Streams } from '../transports/http/streams.ts'
import { authorizerOptions, namedHosts } from './auth.ts'
import type { FetchOptions } from './serve.ts'
import type { Server } from './server.ts'
import { extraRoutesOf, streamsOf } from './streams.ts'

/** Answers requests of `node:http` by a server, as Express and Fastify hand them over. */
export function nodeHandler({ acceptor, engine }: Server, { auth, priming, ...options }: FetchOptions = {}): NodeHttpHandler {
  const beside = extraRoutesOf(engine)
  const limits = { frameBytes: engine.limits.frameBytes }
  const streams = streamsOf(engine, Streams, storeLogs, { priming })
  if (auth === undefined || auth === 'none') return nodeHttpHandler(acceptor, { ...options, ...beside, limits, streams })
  const hosts = namedHosts({ ...options, auth })
  const authorizer = createAuthorizer(auth, authorizerOptions(engine))
  return nodeHttpHandler(acceptor, { ...options, ...beside, limits, streams, hosts, authorizer })
}
