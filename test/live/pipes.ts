/** Ways for frames to a server and back, each the real thing: a child's pipes, a WebSocket, HTTP with a session, HTTP without. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { revisionById } from '../../src/revisions/index.ts'
import type { Server, ServerOptions } from '../../src/server/index.ts'
import type { Frame } from '../spec/wire.ts'
import { liveFixture, type Variant } from './fixture.ts'

export interface Pipe {
  send(frame: Frame): void
  /** The handshake is made: from here on what is said unasked can be heard. */
  ready(): Promise<void>
  /** Lets go of a request that is under way, by its id. */
  drop(id: unknown): void
  close(): Promise<void>
  /** Ends the server as a crash would, where it is a process of its own. */
  kill?(): Promise<void>
}

export type Carrier = 'stdio' | 'websocket' | 'http' | 'stateless'

export interface PipeOptions {
  readonly variant?: Variant
  readonly server?: Partial<ServerOptions>
  /** Instead of the fixture. */
  readonly serve?: () => Server
}

export async function openPipe(carrier: Carrier, options: PipeOptions, heard: (frame: Frame) => void): Promise<Pipe> {
  if (carrier === 'stdio' && options.serve === undefined) return child(options, heard)
  const server = options.serve?.() ?? liveFixture(options.variant, options.server)
  const { url } = await server.listen({ wsPath: '/ws' })
  const pipe = carrier === 'http' || carrier === 'stateless' ? http(url, carrier === 'http', heard) : await socket(url, heard)
  return {
    ...pipe,
    close: async () => {
      await pipe.close()
      await server.close()
    },
  }
}

async function child({ variant = 'told', server }: PipeOptions, heard: (frame: Frame) => void): Promise<Pipe> {
  const program = fileURLToPath(new URL('fixture-stdio.ts', import.meta.url))
  const store = typeof server?.store === 'string' ? [server.store] : []
  const running = spawn(process.execPath, [program, variant, ...store], { stdio: ['pipe', 'pipe', 'inherit'] })
  createInterface({ input: running.stdout }).on('line', line => heard(JSON.parse(line)))
  return {
    send: frame => void running.stdin.write(`${JSON.stringify(frame)}\n`),
    ready: async () => {},
    drop: () => {},
    close: () =>
      new Promise(resolve => {
        running.on('close', () => resolve())
        running.stdin.end()
      }),
    kill: () =>
      new Promise(resolve => {
        running.on('close', () => resolve())
        running.kill('SIGKILL')
      }),
  }
}

async function socket(url: string, heard: (frame: Frame) => void): Promise<Pipe> {
  const ws = new WebSocket(url.replace('http', 'ws').replace(/\/mcp$/, '/ws'), 'mcp')
  ws.onmessage = ({ data }) => heard(JSON.parse(String(data)))
  await new Promise((resolve, reject) => {
    ws.onopen = resolve
    ws.onerror = reject
  })
  return {
    send: frame => ws.send(JSON.stringify(frame)),
    ready: async () => {},
    drop: () => {},
    close: () =>
      new Promise(resolve => {
        // A server that has closed first has closed this too.
        if (ws.readyState === WebSocket.CLOSED) return resolve()
        ws.onclose = () => resolve()
        ws.close()
      }),
  }
}

function http(url: string, session: boolean, heard: (frame: Frame) => void): Pipe {
  const named: Record<string, string> = {}
  const all = new AbortController()
  const streams = new Map<unknown, AbortController>()
  const exchange = async (method: string, more: Record<string, string>, body?: Frame): Promise<void> => {
    const own = new AbortController()
    if (body?.['id'] !== undefined) streams.set(body['id'], own)
    const response = await fetch(url, {
      method,
      headers: { accept: method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream', ...named, ...more },
      signal: AbortSignal.any([all.signal, own.signal]),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const given = response.headers.get('mcp-session-id')
    if (given !== null) Object.assign(named, { 'mcp-session-id': given, 'mcp-protocol-version': '2025-11-25' })
    if (method === 'GET') opened?.()
    await read(response, frame => {
      const agreed = (frame['result'] as Frame | undefined)?.['protocolVersion']
      if (session && typeof agreed === 'string') named['mcp-protocol-version'] = agreed
      heard(frame)
    })
  }
  let opened: (() => void) | undefined
  const isFirst = (done: Promise<void>): void => void done.catch(() => undefined)
  return {
    send: frame => {
      const { http: policy } = revisionById('2026-07-28')
      const params = frame['params'] as Frame | undefined
      const name = ['name', 'uri'].find(one => params?.[one] !== undefined)
      const headers = session ? {} : policy.headers(String(frame['method']), params, name)
      isFirst(exchange('POST', { 'content-type': 'application/json', ...headers }, frame))
    },
    ready: async () => {
      if (!session) return
      await new Promise<void>(resolve => {
        opened = resolve
        isFirst(exchange('GET', {}))
      })
    },
    drop: id => streams.get(id)?.abort(),
    close: async () => {
      if (session) await fetch(url, { method: 'DELETE', headers: named })
      all.abort()
    },
  }
}

async function read(response: Response, heard: (frame: Frame) => void): Promise<void> {
  if (response.headers.get('content-type')?.startsWith('application/json')) return heard((await response.json()) as Frame)
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of (response.body ?? []) as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true })
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const data = /^data: ?(\S.*)$/m.exec(text.slice(0, end))?.[1]
      text = text.slice(end + 2)
      if (data !== undefined) heard(JSON.parse(data))
    }
  }
}
