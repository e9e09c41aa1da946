/** A server behind the old pair: one stream brings all it says, its first event names where to post. */
import { clip } from '../../jsonrpc/limits.ts'
import { Failed } from '../scenario.ts'
import { guardedBy } from './hello.ts'
import { httpCall, openSockets } from './http-call.ts'
import type { Pipe, PipeSink } from './pipe.ts'
import type { HttpFace } from './raw-peer.ts'

const streamMs = 600_000
/** The longest time until the stream has named where to post. */
const endpointMs = 10_000

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
    const late = (): void => reject(new Failed(`The stream has not named where to post within ${endpointMs} ms`))
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
        else if (type === 'endpoint') reject(new Failed(`The endpoint "${clip(data)}" is no address`))
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
