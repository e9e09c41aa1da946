/**
 * The node:http face of the door, and the hot path: one small object per request beside its lane, no web Request or
 * Response, no stream machinery for JSON answers, one write each.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Door } from '../../jsonrpc/connection.ts'
import { createEndpoint, type Endpoint, type HttpOptions } from './endpoint.ts'
import { NodeExchange } from './node-exchange.ts'

/** `parsedBody`: what a framework has made of the body, if it has read it already. */
export type NodeHttpHandler = (req: IncomingMessage, res: ServerResponse, parsedBody?: unknown) => void

/** Serves Streamable HTTP on node:http, or inside any framework that stands on it. */
export function nodeHttpHandler(door: Door, options?: HttpOptions): NodeHttpHandler {
  return nodeFace(createEndpoint(door, options))
}

/** The same over an endpoint that several carriers share. */
export function nodeFace(endpoint: Endpoint): NodeHttpHandler {
  return (req, res, parsedBody) => new NodeExchange(endpoint, req, res).begin(parsedBody)
}
