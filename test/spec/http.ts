/** Bare requests to a real listener: every header and byte is the test's own. */
import { Agent, type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { encodeHeaderValue, type RevisionId, revisionById } from '../../src/revisions/index.ts'
import { enveloped, type Frame, helloParams } from './wire.ts'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body as a frame; of an event stream the last one. */
  readonly frame: Frame
  /** All frames, in order. */
  readonly frames: readonly Frame[]
}

export interface Ask {
  /** Default: a socket of its own. */
  readonly agent?: Agent
  readonly method?: string
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly body?: unknown
}

export const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

/** Sends and reads to the end. */
export async function send(url: string, ask: Ask): Promise<Answer> {
  const { response } = await open(url, ask)
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString('utf8')
  const frames = framesOf(response, text)
  return { status: response.statusCode ?? 0, headers: response.headers, text, frames, frame: frames.at(-1) ?? {} }
}

export interface Opened {
  readonly request: ClientRequest
  readonly response: IncomingMessage
}

/** Sends and gives the answer as soon as its headers are there. */
export function open(
  url: string,
  { method = 'POST', headers = json, body, agent = new Agent({ keepAlive: false }) }: Ask,
): Promise<Opened> {
  const text = body === undefined ? undefined : typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)) as Record<string, string>
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: given, agent }, response => resolve({ request: sent, response }))
    sent.on('error', reject)
    sent.end(text)
  })
}

/** Sends, and gives the request at once: its answer may never come. */
export function begin(url: string, { method = 'POST', headers = json, body }: Ask): ClientRequest {
  const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)) as Record<string, string>
  const sent = request(url, { method, headers: given, agent: new Agent({ keepAlive: false }) })
  sent.on('error', () => {})
  return sent.end(JSON.stringify(body))
}

/** The events of a stream, one frame at a time; events without data are passed over. */
export async function* events(response: IncomingMessage): AsyncGenerator<{ id: string | undefined; frame: Frame | undefined }> {
  let rest = ''
  for await (const chunk of response.setEncoding('utf8')) {
    rest += chunk
    for (let at = rest.indexOf('\n\n'); at !== -1; at = rest.indexOf('\n\n')) {
      const event = readEvent(rest.slice(0, at))
      rest = rest.slice(at + 2)
      if (event !== undefined) yield event
    }
  }
}

function readEvent(text: string): { id: string | undefined; frame: Frame | undefined } | undefined {
  const lines = text.split('\n')
  const member = (name: string): string[] =>
    lines.filter(line => line.startsWith(`${name}:`)).map(line => line.slice(name.length + 1).replace(/^ /, ''))
  const data = member('data').join('\n')
  const [id] = member('id')
  if (data === '' && id === undefined) return undefined
  return { id, frame: data === '' ? undefined : JSON.parse(data) }
}

function framesOf(response: IncomingMessage, text: string): Frame[] {
  if (text === '') return []
  if (response.headers['content-type']?.startsWith('text/event-stream') !== true) return [JSON.parse(text)].flat() as Frame[]
  return text.split('\n\n').flatMap<Frame>(event => readEvent(event)?.frame ?? [])
}

const nameParams: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
}

/** The headers that a request of this wire must have; `session` on wires that have sessions. */
export function headersFor(revision: RevisionId, method: string, params: Frame, session?: string): Record<string, string> {
  const { era, wire } = revisionById(revision)
  if (era === 'session') {
    const version = revision === '2025-06-18' || revision === '2025-11-25' ? { 'mcp-protocol-version': wire } : {}
    return { ...json, ...version, ...(session === undefined ? {} : { 'mcp-session-id': session }) }
  }
  const name = params[nameParams[method] ?? '']
  const named = typeof name === 'string' ? { 'mcp-name': encodeHeaderValue(name) } : {}
  return { ...json, 'mcp-protocol-version': wire, 'mcp-method': method, ...named }
}

export interface HttpPeer {
  readonly session: string | undefined
  readonly hello: Answer | undefined
  /** A request of this wire. `headers` replaces single ones; undefined leaves one out. */
  ask(
    method: string,
    params?: Frame,
    more?: { headers?: Readonly<Record<string, string | undefined>>; id?: string | number },
  ): Promise<Answer>
  open(method: string, params?: Frame, more?: { headers?: Readonly<Record<string, string | undefined>> }): Promise<Opened>
  tell(method: string, params?: Frame): Promise<Answer>
}

/** A client of one wire over HTTP, its handshake made. `own`: headers of each of its requests. */
export async function httpPeer(
  url: string,
  revision: RevisionId,
  capabilities: Frame = {},
  own: Readonly<Record<string, string>> = {},
): Promise<HttpPeer> {
  let session: string | undefined
  let hello: Answer | undefined
  let nextId = 1
  const asking = (
    method: string,
    params: Frame,
    headers: Readonly<Record<string, string | undefined>> = {},
    id: string | number = nextId++,
  ): Ask => ({
    headers: { ...headersFor(revision, method, params, session), ...own, ...headers },
    body: { jsonrpc: '2.0', id, method, params: enveloped(revision, params, capabilities) },
  })
  const peer: HttpPeer = {
    get session() {
      return session
    },
    get hello() {
      return hello
    },
    ask: (method, params = {}, { headers, id } = {}) => send(url, asking(method, params, headers, id)),
    open: (method, params = {}, { headers } = {}) => open(url, asking(method, params, headers)),
    tell: (method, params = {}) =>
      send(url, {
        headers: { ...headersFor(revision, method, params, session), ...own },
        body: { jsonrpc: '2.0', method, params },
      }),
  }
  if (revisionById(revision).era === 'session') {
    hello = await send(url, {
      headers: { ...json, ...own },
      body: { jsonrpc: '2.0', id: 0, method: 'initialize', params: helloParams(revision, capabilities) },
    })
    session = hello.headers['mcp-session-id'] as string | undefined
    await peer.tell(revision === 's3' ? 'initialized' : 'notifications/initialized')
  }
  return peer
}
