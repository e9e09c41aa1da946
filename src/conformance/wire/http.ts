/** A server behind Streamable HTTP: every message a POST of its own, sessions and streams as the revision has them. */

import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { Failed, type RevisionId } from '../scenario.ts'
import { guardedBy, messageHeaders } from './envelope.ts'
import { httpCall, openSockets, present } from './http-call.ts'
import type { HttpControl, Pipe, PipeSink, SendContext, Sent } from './raw-peer.ts'

const streamMs = 600_000
/** A server that does not answer at all when it is listened to need not be waited for. */
const listenMs = 5_000

/** A pipe to one endpoint. */
export function httpPipe({ url, headers: always }: HttpPlace, revision: RevisionId): Pipe {
  const sockets = openSockets()
  const gone = new AbortController()
  let sink: PipeSink | undefined
  let session: string | undefined
  let version: string | undefined
  const http: HttpControl = {
    url,
    get session() {
      return session
    },
    headers: message => ({ ...always, ...messageHeaders(revision, message, session, version) }),
    call: call => httpCall({ url, ...call }, sockets),
  }

  /** What the handshake brought is said with every later message. */
  function learn(sendContext: SendContext, status: number, headers: Readonly<Record<string, string>>): void {
    if (sendContext.message?.['method'] !== 'initialize' || status >= 300) return
    session = headers['mcp-session-id']
    if (isRecord(sendContext.message['params'])) version = String(sendContext.message['params']['protocolVersion'] ?? '')
  }

  async function send(text: string, sendContext: SendContext): Promise<Sent> {
    const headers = present({ ...http.headers(sendContext.message), ...lowered(sendContext.headers) })
    const signal = sendContext.signal === undefined ? gone.signal : AbortSignal.any([gone.signal, sendContext.signal])
    const reply = await http.call({
      method: 'POST',
      headers,
      body: text,
      signal,
      ms: streamMs,
      onHead: (status, got) => {
        learn(sendContext, status, got)
        sendContext.onHead?.(status, got)
      },
      onEvent: ({ data }) => data !== '' && sink?.frame(data, 200, sendContext.exchange),
    })
    if (reply.body !== '') sink?.frame(reply.body, reply.status, sendContext.exchange)
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

// ── A server behind the old pair: one stream brings all it says, its first event names where to post.

/** The longest time until the stream has named where to post. */
const endpointMs = 10_000

/** Where a server is reached over HTTP. */
interface HttpPlace {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
}

/** A pipe to the old pair. */
export function ssePipe({ url, headers }: HttpPlace): Pipe {
  const sockets = openSockets()
  const gone = new AbortController()
  let endpoint: URL | undefined
  const http: HttpControl = {
    get url() {
      return endpoint ?? url
    },
    session: undefined,
    headers: () => ({ ...headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' }),
    call: call => httpCall({ url: endpoint ?? url, ...call }, sockets),
  }
  return {
    carrier: 'sse',
    http,
    async start(sink) {
      endpoint = await openStream(url, headers, gone.signal, sink)
    },
    async send(text, sendContext) {
      const headers = present({ ...http.headers(), ...sendContext.headers })
      const reply = await http.call({ method: 'POST', headers, body: text })
      return { status: reply.status, headers: reply.headers, body: reply.body }
    },
    async close() {
      gone.abort()
      sockets.close()
    },
  }
}

function openStream(url: URL, headers: Readonly<Record<string, string>>, signal: AbortSignal, sink: PipeSink): Promise<URL> {
  return new Promise((resolve, reject) => {
    let isFirst = true
    const late = (): void => reject(new Failed(`The stream did not name its endpoint within ${endpointMs} ms`))
    const timer = setTimeout(late, endpointMs)
    const call = httpCall({
      url,
      method: 'GET',
      headers: { ...headers, accept: 'text/event-stream' },
      ms: streamMs,
      signal,
      onEvent({ type, data }) {
        if (!isFirst) return void (data !== '' && sink.frame(data, 200))
        isFirst = false
        clearTimeout(timer)
        const named = type === 'endpoint' && URL.canParse(data, url) ? new URL(data, url) : undefined
        if (named !== undefined) resolve(named)
        else if (type === 'endpoint') reject(new Failed(`The endpoint "${clip(data)}" is not an address`))
        else reject(new Failed(`The first event of the stream is "${clip(type)}", not "endpoint"`))
      },
    })
    call.then(
      ({ status }) => {
        clearTimeout(timer)
        reject(guardedBy(status) ?? new Error(`GET of the stream was answered with HTTP status ${status}`))
        sink.closed('the stream ended')
      },
      error => {
        clearTimeout(timer)
        reject(error)
        sink.closed('the stream was lost')
      },
    )
  })
}
