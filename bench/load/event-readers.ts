/** Subscribers over HTTP that only count what comes, and how long it took. */
import http from 'node:http'
import type { Revision } from '../work.ts'

export interface EventReader {
  heard(): number
  readonly latencies: number[]
  end(): void
}

const extensions = { 'dev.vivarium/events': {} }
const accept = 'application/json, text/event-stream'
const wish = { events: ['happened'] }
/** What each event has once, and nothing else that comes. */
const mark = '"notifications/event"'

export function readEvents(url: string, revision: Revision): Promise<EventReader> {
  return revision === '2026-07-28' ? listen(url) : inSession(url)
}

function listen(url: string): Promise<EventReader> {
  const params = {
    notifications: { 'dev.vivarium/events': [wish] },
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': { extensions },
    },
  }
  const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' }
  return stream(url, 'POST', headers, { jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params })
}

async function inSession(url: string): Promise<EventReader> {
  const client = { protocolVersion: '2025-11-25', capabilities: { extensions }, clientInfo: { name: 'bench', version: '1' } }
  const hello = await post(url, {}, { jsonrpc: '2.0', id: 1, method: 'initialize', params: client })
  const headers = { 'mcp-session-id': hello.headers.get('mcp-session-id') ?? '', 'mcp-protocol-version': '2025-11-25' }
  await post(url, headers, { jsonrpc: '2.0', method: 'notifications/initialized' })
  const reader = stream(url, 'GET', headers)
  const subscribed = await post(url, headers, { jsonrpc: '2.0', id: 2, method: 'event/subscribe', params: wish })
  const text = await subscribed.text()
  if (!text.includes('"active"')) throw new Error(`No subscription: ${text.slice(0, 200)}`)
  return reader
}

async function post(url: string, headers: Record<string, string>, body: object): Promise<Response> {
  const all = { 'content-type': 'application/json', accept, ...headers }
  const response = await fetch(url, { method: 'POST', headers: all, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`${response.status} for ${JSON.stringify(body).slice(0, 100)}`)
  return response
}

/** Resolves when it is open: with a body when the first message is there, without one when there are headers. */
function stream(url: string, method: 'GET' | 'POST', headers: object, body?: object): Promise<EventReader> {
  return new Promise((resolve, reject) => {
    const all = { ...(body === undefined ? {} : { 'content-type': 'application/json' }), accept, ...headers }
    const request = http.request(url, { method, headers: all, agent: false }, response => {
      let heard = 0
      let last = ''
      const latencies: number[] = []
      const reader: EventReader = { heard: () => heard, latencies, end: () => request.destroy() }
      response.setEncoding('latin1').on('error', () => {})
      response.on('data', (chunk: string) => {
        const text = last + chunk
        let end = 0
        for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, end)) {
          heard++
          end = at + mark.length
        }
        last = text.slice(Math.max(end, text.length - mark.length + 1))
        const now = performance.timeOrigin + performance.now()
        for (const [, at] of chunk.matchAll(/"at":([\d.]+)/g)) latencies.push(now - Number(at))
        resolve(reader)
      })
      if (body === undefined) resolve(reader)
    })
    request.on('error', reject)
    request.end(body === undefined ? undefined : JSON.stringify(body))
  })
}
