/** The same between a server and its HTTP clients: a proxy on loopback that changes statuses, headers and bodies. */
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Web {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

export interface WebFault {
  /** Headers of a request on their way in; undefined: answered here, as `answer` says. */
  incoming?(
    method: string,
    headers: Readonly<Record<string, string | readonly string[] | undefined>>,
  ): Record<string, string | readonly string[] | undefined>
  /** Answers without asking the server. */
  answer?(
    method: string,
    headers: Readonly<Record<string, string | readonly string[] | undefined>>,
  ): { status: number; body?: string } | undefined
  head?(web: Web, method: string): Web
}

export interface WebBox {
  readonly url: string
  close(): Promise<void>
}

export async function webBox(target: string, fault: WebFault): Promise<WebBox> {
  const server = createServer((req, res) => relay(new URL(target), fault, req, res))
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}${new URL(target).pathname}`, close: () => closed(server) }
}

function relay(target: URL, fault: WebFault, req: IncomingMessage, res: ServerResponse): void {
  const method = req.method ?? 'GET'
  const own = fault.answer?.(method, req.headers)
  if (own !== undefined) {
    req.resume()
    res.writeHead(own.status).end(own.body)
    return
  }
  const headers = { ...(fault.incoming?.(method, req.headers) ?? req.headers), host: target.host }
  const onward = request(new URL(req.url ?? '/', target), { method, headers: headers as Record<string, string> }, answer => {
    const web = { status: answer.statusCode ?? 500, headers: answer.headers }
    const { status, headers } = fault.head?.(web, method) ?? web
    res.writeHead(status, headers as Record<string, string>)
    answer.pipe(res)
    answer.on('error', () => res.destroy())
  })
  onward.on('error', () => res.destroy())
  res.on('close', () => onward.destroy())
  req.pipe(onward)
}

function closed(server: Server): Promise<void> {
  server.closeAllConnections()
  return new Promise(done => server.close(() => done()))
}
