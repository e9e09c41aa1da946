/**
 * Small pages beside the endpoint that whoever reaches the listener may read, such as those by which load balancers learn whether a
 * process is well. Who may call, or calls from this very machine, is told more.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Awaitable } from '../../jsonrpc/message.ts'
import { notRead } from './document.ts'
import { type Endpoint, isRefusal } from './endpoint.ts'
import type { NodeHttpHandler } from './node.ts'
import { NodeExchange } from './node-exchange.ts'
import { failed } from './refusal.ts'

export interface PageAnswer {
  readonly status: number
  readonly type: string
  readonly body: string
}

export interface OpenPage {
  /** `known`: whoever reads it may see what is inside. */
  read(known: boolean): Awaitable<PageAnswer>
}

export function pageHandler(endpoint: Endpoint, page: OpenPage): NodeHttpHandler {
  return (req, res) => {
    const exchange = new NodeExchange(endpoint, req, res)
    const refusal = notRead(req.method)
    if (refusal !== undefined) return exchange.refuse(refusal)
    answer(endpoint, page, exchange, req, res).catch(() => exchange.refuse(failed))
  }
}

async function answer(
  endpoint: Endpoint,
  page: OpenPage,
  exchange: NodeExchange,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const known = isLocal(endpoint, req) || (await isAuthorized(endpoint, exchange))
  const { status, type, body } = await page.read(known)
  if (res.destroyed) return
  exchange.reply(status, ['content-type', type, 'cache-control', 'no-store'], req.method === 'HEAD' ? '' : body)
}

/** By its own address and name: what a proxy on this machine passes on is from elsewhere, and so is what a page in a browser asks. */
function isLocal({ guard }: Endpoint, req: IncomingMessage): boolean {
  const { remoteAddress = '' } = req.socket
  if (!/^(127\.|::1$|::ffff:127\.)/.test(remoteAddress)) return false
  const { headers } = req
  const passedOn = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'].some(name => headers[name] !== undefined)
  return !passedOn && headers.origin === undefined && guard.checkRequest(req) === undefined
}

async function isAuthorized({ identify }: Endpoint, exchange: NodeExchange): Promise<boolean> {
  if (identify === undefined || exchange.header('authorization') === undefined) return false
  const found = await identify(name => exchange.header(name), exchange)
  return found !== undefined && !isRefusal(found)
}
