/** When a request on a connection is looked at: after those before it, and before the body is sent where the sender asks. */
import { checkBody, type Endpoint } from './endpoint.ts'
import type { NodeHttpHandler } from './node.ts'
import { NodeExchange } from './node-exchange.ts'
import type { Refusal } from './refusal.ts'

/** Requests that may wait on one connection for the answer to an earlier one. */
const mostInTurn = 100

/**
 * One request at a time on each connection. Node hands on whatever was sent in one go, and answers could pile up by the
 * hundred for a client that reads none of them. A response gets its socket when all earlier ones are out.
 */
export function inOrder(endpoint: Endpoint, handle: NodeHttpHandler): NodeHttpHandler {
  const waiting = new WeakMap<object, number>()
  return (req, res) => {
    if (res.socket !== null) return handle(req, res)
    const before = waiting.get(req.socket) ?? 0
    if (before >= mostInTurn) return new NodeExchange(endpoint, req, res).refuse(tooManyInTurn)
    waiting.set(req.socket, before + 1)
    res.once('socket', () => {
      waiting.set(req.socket, (waiting.get(req.socket) ?? 1) - 1)
      handle(req, res)
    })
  }
}

const tooManyInTurn: Refusal = {
  status: 503,
  message: `More than ${mostInTurn} requests wait on this connection for their turn. Read the answers, or open another connection`,
  headers: { 'retry-after': '1' },
}

/** A client that asks before it sends a long body (`Expect: 100-continue`) is told at once if that would be refused. */
export function answerExpect(endpoint: Endpoint, handle: NodeHttpHandler): NodeHttpHandler {
  return (req, res) => {
    const header = (name: string) => single(req.headers[name])
    const refusal =
      endpoint.guard.checkRequest(req) ?? (req.method === 'POST' ? checkBody({ header }, endpoint.limits) : undefined)
    if (refusal !== undefined) return new NodeExchange(endpoint, req, res).refuse(refusal)
    res.writeContinue()
    handle(req, res)
  }
}

function single(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}
