/** Gateways as processes on one store, a server behind them that counts what it does, and a proxy that sends each request to another one. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createServer, jsonSchema, type Server } from '../../src/server/index.ts'

export interface GatewayProcess {
  readonly url: string
  readonly pid: number
  ask(line: string): Promise<unknown>
  kill(): Promise<void>
  end(): Promise<void>
}

export async function startGateway(env: Readonly<Record<string, string>>): Promise<GatewayProcess> {
  const script = join(import.meta.dirname, 'replica.ts')
  const child: ChildProcess = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', script], {
    stdio: ['pipe', 'pipe', 'inherit'],
    // What waits for its operator is answered by the tests; nobody reads of it there.
    env: { ...process.env, VIVARIUM_LOG: 'silent', ...env },
  })
  const { stdout, stdin, pid = -1 } = child
  if (stdout === null || stdin === null) throw new Error('The gateway has no pipes')
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]()
  const next = async (): Promise<string> => String((await lines.next()).value)
  const url = await next()
  stdin.on('error', () => {})
  let before: Promise<unknown> = Promise.resolve()
  return {
    url,
    pid,
    ask: line => {
      const answer = before.then(async () => {
        stdin.write(`${line}\n`)
        return JSON.parse(await next())
      })
      before = answer.catch(() => {})
      return answer
    },
    kill: async () => {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
    end: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      stdin.end()
      await ended
    },
  }
}

export interface Bank {
  readonly url: string
  readonly server: Server
  /** How often each thing was done, by its id. */
  readonly done: Map<string, number>
  close(): Promise<void>
}

const input = jsonSchema<{ id: string }>({ type: 'object', properties: { id: { type: 'string' } }, required: ['id'] })

/** Tools `pay` and `close`, which do something; `read`, which does not; the resource `note://1`. */
export async function startBank(): Promise<Bank> {
  const server = createServer({ name: 'bank', version: '1.0.0', log: 'silent', limits: { rates: false } })
  const done = new Map<string, number>()
  const does =
    (tool: string) =>
    ({ id }: { id: string }) => {
      done.set(id, (done.get(id) ?? 0) + 1)
      return `${tool} ${id} ${done.get(id)}`
    }
  server.tool('pay', { input }, does('paid'))
  server.tool('close', { input }, does('closed'))
  server.tool('read', { annotations: { readOnlyHint: true } }, () => 'read')
  server.resource('note://1', { name: 'note' }, () => 'a note')
  const { url } = await server.listen()
  return { url, server, done, close: () => server.close() }
}

export interface RoundRobin {
  readonly url: string
  /** To whom requests go, in turn. */
  targets: readonly string[]
  /** How many each got. */
  readonly counts: Map<string, number>
  /** All that was sent, heads and bodies. */
  readonly seen: string[]
  close(): Promise<void>
}

/** A request goes to the next target; to the one after it where nobody listens there. What breaks midway is answered 502. */
export async function roundRobin(targets: readonly string[]): Promise<RoundRobin> {
  let turn = 0
  const counts = new Map<string, number>()
  const forward = (request: http.IncomingMessage, response: http.ServerResponse, body: Buffer, tries: number): void => {
    const target = proxy.targets[turn++ % proxy.targets.length] ?? ''
    const { hostname, port, host } = new URL(target)
    const headers = { ...request.headers, host }
    const onward = http.request({ hostname, port, path: request.url, method: request.method, headers }, answer => {
      counts.set(target, (counts.get(target) ?? 0) + 1)
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
      answer.on('error', () => response.destroy())
    })
    onward.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED' && tries > 0) return forward(request, response, body, tries - 1)
      if (response.headersSent) response.destroy()
      else response.writeHead(502).end()
    })
    response.on('close', () => onward.destroy())
    onward.end(body)
  }
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of request) chunks.push(chunk)
    } catch {
      return
    }
    const body = Buffer.concat(chunks)
    proxy.seen.push(`${JSON.stringify(request.rawHeaders)} ${body}`)
    forward(request, response, body, proxy.targets.length)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const proxy: RoundRobin = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    targets,
    counts,
    seen: [],
    close: async () => {
      server.closeAllConnections()
      await new Promise<void>(resolve => server.close(() => resolve()))
    },
  }
  return proxy
}
