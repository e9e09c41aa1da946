/** What must not be reached: servers on this machine that write down everything that comes to them. */
import type http from 'node:http'
import { listen, type Seen } from '../auth/world.ts'

export interface Decoy {
  readonly origin: string
  /** Everything that came, as text: request lines, headers and bodies, with Basic credentials decoded. */
  readonly came: string[]
}

/** Answers whatever comes as `answer` says. Default: an empty JSON object. */
export async function startDecoy(answer: (response: http.ServerResponse, path: string) => void = empty): Promise<Decoy> {
  const came: string[] = []
  const take = async (request: http.IncomingMessage): Promise<void> => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    came.push(written(request, Buffer.concat(parts).toString()))
  }
  const origin = await listen(
    async (request, response) => {
      await take(request)
      answer(response, request.url ?? '')
    },
    (request, socket) => {
      came.push(written(request, ''))
      socket.end('HTTP/1.1 400 No\r\ncontent-length: 0\r\n\r\n')
    },
  )
  return { origin, came }
}

function empty(response: http.ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
}

function written({ method, url, headers }: http.IncomingMessage, body: string): string {
  return `${method} ${url} ${shownIn(headers, body)}`
}

/** The same of a request that a world has seen. */
export function textOf({ path, query, headers, body }: Seen): string {
  return `${path}?${query} ${shownIn(headers, body)}`
}

function shownIn(headers: http.IncomingHttpHeaders, body: string): string {
  const basic = headers.authorization?.replace(/^Basic /, '') ?? ''
  return `${JSON.stringify(headers)} ${Buffer.from(basic, 'base64').toString()} ${decodeURIComponent(body.replaceAll('+', ' '))}`
}
