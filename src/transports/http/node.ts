/**
 * The node:http face of the door, and the hot path: one small object per request beside its lane, no web Request or
 * Response, no stream machinery for JSON answers, one write each.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Door } from '../../jsonrpc/connection.ts'
import { downloadName, pathOf } from './document.ts'
import { createEndpoint, type Endpoint, type HttpOptions } from './endpoint.ts'
import { NodeExchange } from './node-exchange.ts'

/** `parsedBody`: what a framework has made of the body, if it has read it already. */
export type NodeHttpHandler = (req: IncomingMessage, res: ServerResponse, parsedBody?: unknown) => void

/** Serves Streamable HTTP on node:http, or inside any framework that stands on it. */
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

/** The same over an endpoint that several carriers share. */
export function nodeFace(endpoint: Endpoint): NodeHttpHandler {
  return (req, res, parsedBody) => new NodeExchange(endpoint, req, res).begin(parsedBody)
}

/** Frameworks take off the path under which they have mounted us, but keep the whole. */
function originalUrl(req: IncomingMessage): string | undefined {
  return 'originalUrl' in req && typeof req.originalUrl === 'string' ? req.originalUrl : req.url
}
