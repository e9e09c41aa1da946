/** A server behind Streamable HTTP: every message a POST of its own, sessions and streams as the revision has them. */
import { isRecord } from '../../jsonrpc/message.ts'
import type { RevisionId } from '../scenario.ts'
import { messageHeaders } from './envelope.ts'
import { httpCall, openSockets } from './http-call.ts'
import type { Outward, Pipe, PipeSink } from './pipe.ts'
import type { HttpFace, Sent } from './raw-peer.ts'
import type { HttpPlace } from './sse-pair.ts'

const streamMs = 600_000
/** A server that does not answer at all when it is listened to need not be waited for. */
const listenMs = 5_000

export function httpPipe({ url, headers: always }: HttpPlace, revision: RevisionId): Pipe {
  const sockets = openSockets()
  const gone = new AbortController()
  let sink: PipeSink | undefined
  let session: string | undefined
  let version: string | undefined
  const http: HttpFace = {
    url,
    get session() {
      return session
    },
    headers: message => ({ ...always, ...messageHeaders(revision, message, session, version) }),
    call: call => httpCall({ url, ...call }, sockets),
  }

  /** What the handshake brought is said with every later message. */
  function learn(outward: Outward, status: number, headers: Readonly<Record<string, string>>): void {
    if (outward.message?.['method'] !== 'initialize' || status >= 300) return
    session = headers['mcp-session-id']
    if (isRecord(outward.message['params'])) version = String(outward.message['params']['protocolVersion'] ?? '')
  }

  async function send(text: string, outward: Outward): Promise<Sent> {
    const given = Object.entries({ ...http.headers(outward.message), ...lowered(outward.headers) })
    const headers = Object.fromEntries(given.filter(([, value]) => value !== undefined)) as Record<string, string>
    const signal = outward.signal === undefined ? gone.signal : AbortSignal.any([gone.signal, outward.signal])
    const reply = await http.call({
      method: 'POST',
      headers,
      body: text,
      signal,
      ms: streamMs,
      onHead: (status, got) => {
        learn(outward, status, got)
        outward.onHead?.(status, got)
      },
      onEvent: ({ data }) => data !== '' && sink?.frame(data, 200, outward.exchange),
    })
    if (reply.body !== '') sink?.frame(reply.body, reply.status, outward.exchange)
    return { status: reply.status, headers: reply.headers, body: reply.body }
  }

  return {
    carrier: 'http',
    http,
    async start(given) {
      sink = given
    },
    send,
    listen: () =>
      new Promise(resolve => {
        const timer = setTimeout(resolve, listenMs)
        const heard = (): void => {
          clearTimeout(timer)
          resolve()
        }
        const { 'content-type': _, ...headers } = http.headers()
        const call = http.call({
          method: 'GET',
          headers: { ...headers, accept: 'text/event-stream' },
          signal: gone.signal,
          ms: streamMs,
          onHead: heard,
          onEvent: ({ data }) => data !== '' && sink?.frame(data, 200),
        })
        // A server may offer no such stream, and may end it.
        call.then(heard, heard)
      }),
    async close() {
      if (session !== undefined) {
        await http.call({ method: 'DELETE', headers: http.headers(), ms: 2_000 }).catch(() => undefined)
      }
      gone.abort()
      sockets.close()
      sink?.closed('closed by the kit')
    },
  }
}

function lowered(headers: Readonly<Record<string, string | undefined>> = {}): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}
