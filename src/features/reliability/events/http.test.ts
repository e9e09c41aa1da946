import http from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { eras } from '../../../../test/spec/consent.ts'
import { hearing } from '../../../../test/spec/eventing.ts'
import { enveloped, type Frame, helloParams } from '../../../../test/spec/wire.ts'
import { createServer, type Server } from '../../../server/index.ts'
import { memoryStore } from '../../../stores/memory.ts'
import type { Store } from '../../../stores/store.ts'
import type { WireEvent, WireSubscribed } from './messages.ts'

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

function serve(store?: Store, keep = 10_000): Server {
  const server = createServer({
    name: 'wide',
    version: '1.0.0',
    log: 'silent',
    events: { keep },
    ...(store === undefined ? {} : { store }),
  })
  ends.push(() => server.close())
  return server
}

const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

async function post(url: string, body: Frame, more: Record<string, string> = {}): Promise<{ frame: Frame; session: string }> {
  const response = await fetch(url, { method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify(body) })
  const text = await response.text()
  return { frame: text === '' ? {} : JSON.parse(text), session: response.headers.get('mcp-session-id') ?? '' }
}

/** An event stream that is read only when the test says so. */
function stream(url: string, method: string, more: Record<string, string>, body?: Frame): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method, headers: { ...headers, ...more }, agent: false }, response => {
      response.pause()
      ends.push(() => response.destroy())
      resolve(response)
    })
    request.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body))
  })
}

/** Reads on until the last event that is waited for. */
async function events(response: http.IncomingMessage, last: number): Promise<readonly WireEvent[]> {
  let text = ''
  const found = (): WireEvent[] =>
    [...text.matchAll(/^data: (.+)$/gm)]
      .map(([, data = '']) => JSON.parse(data))
      .filter(({ method }) => method === 'notifications/event')
      .map(({ params }) => params)
  response.setEncoding('utf8').on('data', chunk => {
    text += chunk
  })
  response.resume()
  await expect.poll(() => text.includes(`"n":${last},`)).toBe(true)
  await expect.poll(() => found().at(-1)?.payload?.['n']).toBe(last)
  return found()
}

const wish = { events: ['wide'], subscription_id: 'mine' }

async function open(url: string): Promise<Record<string, string>> {
  const hello = { jsonrpc: '2.0', id: 1, method: 'initialize', params: helloParams('2025-11-25', hearing) }
  const { session } = await post(url, hello)
  const named = { 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' }
  await post(url, { jsonrpc: '2.0', method: 'notifications/initialized' }, named)
  return named
}

const subscribing: Frame = { jsonrpc: '2.0', id: 2, method: 'event/subscribe', params: wish }

async function listening(url: string, revision: string): Promise<http.IncomingMessage> {
  if (revision === '2025-11-25') {
    const named = await open(url)
    const response = await stream(url, 'GET', { ...named, accept: 'text/event-stream' })
    await post(url, subscribing, named)
    return response
  }
  const params = enveloped('2026-07-28', { notifications: { 'dev.vivarium/events': [wish] } }, hearing)
  const listen = { jsonrpc: '2.0', id: 7, method: 'subscriptions/listen', params }
  return stream(url, 'POST', { 'mcp-protocol-version': revision, 'mcp-method': 'subscriptions/listen' }, listen)
}

describe.each(eras)('over HTTP at %s', revision => {
  it('E15-10: what a reader does not take piles up no further than the feed, and then it is told', async () => {
    const server = serve(undefined, 50)
    const wide = server.event('wide', {})
    const response = await listening((await server.listen()).url, revision)
    const filler = 'x'.repeat(50_000)
    const count = 400
    for (let n = 0; n < count; n++) {
      await wide.emit({ n, filler })
      if (n % 20 === 0) await new Promise(resolve => setTimeout(resolve, 1))
    }
    const heard = await events(response, count - 1)
    const numbers = heard.map(({ payload }) => payload?.['n'] as number)
    expect(numbers.length).toBeLessThan(count)
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
    const gaps = heard.filter((_, at) => numbers[at] !== (at === 0 ? 0 : (numbers[at - 1] as number) + 1))
    expect(gaps.map(({ truncated }) => truncated)).toEqual(gaps.map(() => true))
    expect(heard.filter(({ truncated }) => truncated)).toEqual(gaps)
    expect(gaps.length).toBeGreaterThan(0)
  })

  it('E15-10: a reader who keeps up is not held up by one who does not', async () => {
    const server = serve()
    const wide = server.event('wide', {})
    const { url } = await server.listen()
    await listening(url, revision)
    const quick = await listening(url, revision)
    const filler = 'x'.repeat(20_000)
    const reading = events(quick, 199)
    for (let n = 0; n < 200; n++) await wide.emit({ n, filler })
    expect((await reading).map(({ payload }) => payload?.['n'])).toEqual(Array.from({ length: 200 }, (_, n) => n))
  })
})

describe('on several servers with one store', () => {
  it('a broken stream is taken up under its last event id, and what is no stream is refused as such', async () => {
    const server = serve(memoryStore())
    const wide = server.event('wide', {})
    const { url } = await server.listen()
    const named = await open(url)
    const accept = { ...named, accept: 'text/event-stream' }
    const first = await stream(url, 'GET', accept)
    await post(url, subscribing, named)
    await wide.emit({ n: 0, more: true })
    let text = ''
    first.setEncoding('utf8').on('data', chunk => {
      text += chunk
    })
    first.resume()
    await expect.poll(() => text).toContain('"n":0,')
    const last = [...text.matchAll(/^id: ?(.+)$/gm)].at(-1)?.[1] ?? ''
    first.destroy()
    await wide.emit({ n: 1, more: true })
    const again = await stream(url, 'GET', { ...accept, 'last-event-id': last })
    expect((await events(again, 1)).map(({ payload }) => payload?.['n'])).toEqual([1])
    const statuses = [{ 'last-event-id': 'nothing-1' }, { 'mcp-session-id': 'nobody' }].map(async more => {
      return (await stream(url, 'GET', { ...accept, ...more })).statusCode
    })
    expect(await Promise.all(statuses)).toEqual([400, 404])
  })

  it('a session whose stream is at one of them hears what it asked another for', async () => {
    const store = memoryStore()
    const [one, two] = [serve(store), serve(store)]
    const urls = await Promise.all([one, two].map(async server => (await server.listen()).url))
    one.event('wide', {})
    const wide = two.event('wide', {})
    const [here = '', there = ''] = urls
    const named = await open(here)
    const response = await stream(here, 'GET', { ...named, accept: 'text/event-stream' })
    const { frame } = await post(there, subscribing, named)
    expect((frame['result'] as WireSubscribed).status).toBe('active')
    for (let n = 0; n < 3; n++) await wide.emit({ n, more: true })
    const heard = await events(response, 2)
    expect(heard.map(({ payload }) => payload?.['n'])).toEqual([0, 1, 2])
    await post(there, { jsonrpc: '2.0', id: 3, method: 'event/unsubscribe', params: { subscription_id: 'mine' } }, named)
    const other = { ...subscribing, params: { ...wish, subscription_id: 'other' } }
    await post(there, other, named)
    await wide.emit({ n: 3, more: true })
    const all = await events(response, 3)
    expect(all.map(event => event.subscription_id)).toEqual(['other'])
  })

  it('who watches a resource at one of them hears of an event at another that touches it', async () => {
    const store = memoryStore()
    const servers = [serve(store), serve(store)]
    const moved = servers.map(server => {
      server.resource('ticket://{id}', { name: 'ticket' }, () => 'a ticket')
      return server.event('moved', { resource: ({ id }) => `ticket://${id}` })
    })
    const { url } = await (servers[0] as Server).listen()
    const named = await open(url)
    const response = await stream(url, 'GET', { ...named, accept: 'text/event-stream' })
    await post(url, { jsonrpc: '2.0', id: 3, method: 'resources/subscribe', params: { uri: 'ticket://7' } }, named)
    await moved[1]?.emit({ id: '7' })
    let text = ''
    response.setEncoding('utf8').on('data', chunk => {
      text += chunk
    })
    response.resume()
    await expect.poll(() => text).toContain('{"uri":"ticket://7"}')
  })
})
