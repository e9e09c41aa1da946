/**
 * Small pages beside the endpoint that whoever reaches the listener may read, such as those by which load balancers learn whether a
 * process is well. Only who shows a token that may call can be told more: an address of this machine proves nothing, for a proxy on it
 * has one too.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Principal } from '../../jsonrpc/connection.ts'
import { notRead } from './document.ts'
import { type Endpoint, isRefusal } from './endpoint.ts'
import type { OpenPage } from './listening.ts'
import type { NodeHttpHandler } from './node.ts'
import { NodeExchange } from './node-exchange.ts'
import { failed } from './refusal.ts'

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
  const header = (name: string): string | undefined => exchange.header(name)
  const { status, type, body } = await page.read({ principal: await authorized(endpoint, exchange), header })
  if (res.destroyed) return
  exchange.reply(status, ['content-type', type, 'cache-control', 'no-store'], req.method === 'HEAD' ? '' : body)
}

async function authorized({ identify }: Endpoint, exchange: NodeExchange): Promise<Principal | undefined> {
  if (identify === undefined || exchange.header('authorization') === undefined) return undefined
  const found = await identify(name => exchange.header(name), exchange)
  return found === undefined || isRefusal(found) ? undefined : found
}
