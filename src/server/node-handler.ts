/** A server as a handler for frameworks that stand on node:http. */
import { createAuthorizer } from '../auth/resource/authorizer.ts'
import { type NodeHttpHandler, nodeHttpHandler } from '../transports/http/node.ts'
import { authorizerOptions, namedHosts } from './auth.ts'
import { documents } from './documents.ts'
import type { FetchOptions } from './serve.ts'
import type { Server } from './server.ts'

export function nodeHandler({ door, engine }: Server, { auth, ...options }: FetchOptions = {}): NodeHttpHandler {
  const document = documents.get(engine)
  if (auth === undefined || auth === 'none') return nodeHttpHandler(door, { ...options, document })
  const hosts = namedHosts({ ...options, auth })
  return nodeHttpHandler(door, { ...options, document, hosts, authorizer: createAuthorizer(auth, authorizerOptions(engine)) })
}
