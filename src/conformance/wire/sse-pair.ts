/** A server behind the old pair: one stream brings all it says, its first event names where to post. */
import { clip } from '../../jsonrpc/limits.ts'
import { Failed } from '../scenario.ts'
import { httpCall, openSockets } from './http-call.ts'
import type { Pipe, PipeSink } from './pipe.ts'
import type { HttpFace } from './raw-peer.ts'

const streamMs = 600_000

export interface HttpPlace {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
}

export function ssePipe({ url, headers }: HttpPlace): Pipe {
  const sockets = openSockets()
  const gone = new AbortController()
  let endpoint: URL | undefined
  const http: HttpFace = {
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
    async send(text, outward) {
      const given = Object.entries({ ...http.headers(), ...outward.headers }).filter(([, value]) => value !== undefined)
      const sent = Object.fromEntries(given) as Record<string, string>
      const { status, headers: got, body } = await http.call({ method: 'POST', headers: sent, body: text })
      return { status, headers: got, body }
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
    const call = httpCall({
      url,
      method: 'GET',
      headers: { ...headers, accept: 'text/event-stream' },
      ms: streamMs,
      signal,
      onEvent({ type, data }) {
        if (isFirst && type === 'endpoint') resolve(new URL(data, url))
        else if (isFirst) reject(new Failed(`The first event of the stream is "${clip(type)}", not "endpoint"`))
        else if (data !== '') sink.frame(data, 200)
        isFirst = false
      },
    })
    call.then(
      ({ status }) => {
        reject(new Error(`GET of the stream was answered with HTTP status ${status}`))
        sink.closed('the stream ended')
      },
      error => {
        reject(error)
        sink.closed('the stream was lost')
      },
    )
  })
}
