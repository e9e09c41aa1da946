/**
 * The node:http carrier for frameworks: a request handler for an existing server. It creates one small object and a lane per
 * request, and no web Request or Response; a JSON answer is a single write.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Door } from '../../jsonrpc/connection.ts'
import { downloadName, pathOf } from './document.ts'
import { createEndpoint, type Endpoint, type HttpOptions } from './endpoint.ts'
import { NodeExchange } from './node-exchange.ts'

/** A node:http request handler. `parsedBody`: the body, if a framework has already read it. */
export type NodeHttpHandler = (req: IncomingMessage, res: ServerResponse, parsedBody?: unknown) => void

/** Serves Streamable HTTP in any framework based on node:http. */
export function nodeHttpHandler(door: Door, options?: HttpOptions): NodeHttpHandler {
  const endpoint = createEndpoint(door, options)
  const face = nodeFace(endpoint)
  const { authorizer, document, downloads } = endpoint
  if (authorizer === undefined && document === undefined && downloads === undefined) return face
  return (req, res, parsedBody) => {
    const path = pathOf(originalUrl(req))
    const text = authorizer?.document(path)
    if (text !== undefined) new NodeExchange(endpoint, req, res).document(text)
    else if (document !== undefined && path.endsWith(document.path)) new NodeExchange(endpoint, req, res).own(document)
    else {
      const name = downloadName(downloads, path)
      if (name === undefined) face(req, res, parsedBody)
      else new NodeExchange(endpoint, req, res).download(name)
    }
  }
}

/** The same, over an endpoint that several carriers share. */
export function nodeFace(endpoint: Endpoint): NodeHttpHandler {
  return (req, res, parsedBody) => new NodeExchange(endpoint, req, res).begin(parsedBody)
}

/** Frameworks remove the mount path from `url`, and keep the full path in `originalUrl`. */
function originalUrl(req: IncomingMessage): string | undefined {
  return 'originalUrl' in req && typeof req.originalUrl === 'string' ? req.originalUrl : req.url
}
