/** A contender listening over HTTP, and the request heads it must be sent. */
import type { Contender, Mode } from '../contenders.ts'
import { type Child, launch, STEP_MS, within } from '../processes.ts'
import { initialized, opening, type Revision } from '../work.ts'
import type { HttpAnswer, HttpConnection } from './http-connection.ts'
import { nextId } from './round.ts'

export interface HttpServer {
  readonly child: Child
  readonly port: number
}

const SIDE_CHANNEL = new URL('../servers/side-channel.mjs', import.meta.url).href
/** Flags for every HTTP server but those whose start is timed. */
export const SIDE_CHANNEL_FLAGS: readonly string[] = ['--import', SIDE_CHANNEL]

/** Starts a contender and waits for the port it announces. */
export async function startHttp(
  contender: Contender,
  mode: Mode,
  revision: Revision,
  flags: readonly string[] = SIDE_CHANNEL_FLAGS,
): Promise<HttpServer> {
  const child = launch(contender.script('http'), contender.args('http', mode, revision), [...(contender.flags ?? []), ...flags])
  const announced = new Promise<number>(resolve => {
    let text = ''
    child.process.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      const ready = /^ready (\d+)\n/m.exec(text)
      if (ready !== null) resolve(Number(ready[1]))
    })
  })
  try {
    return { child, port: await within(STEP_MS, contender.name, Promise.race([announced, child.gone])) }
  } catch (error) {
    await child.stop()
    throw error
  }
}

export interface Head {
  readonly port: number
  readonly revision: Revision
  readonly contender: Contender
  /** Absent on `initialize`, which has no session yet, and at 2026-07-28. */
  readonly session?: string | undefined
  readonly method: string
  readonly tool?: string | undefined
}

/** Makes the head of a POST for a body of the given length. */
export function headFor(head: Head): (length: number) => string {
  const { contender, revision } = head
  const lines = [
    'POST /mcp HTTP/1.1',
    `Host: 127.0.0.1:${head.port}`,
    'Content-Type: application/json',
    `Accept: ${contender.accept ?? 'application/json, text/event-stream'}`,
  ]
  if (revision === '2026-07-28') {
    lines.push(`MCP-Protocol-Version: ${revision}`, `Mcp-Method: ${head.method}`)
    if (head.tool !== undefined) lines.push(`Mcp-Name: ${head.tool}`)
  } else if (head.session !== undefined) {
    lines.push(`MCP-Protocol-Version: ${contender.handshake ?? revision}`, `Mcp-Session-Id: ${head.session}`)
  }
  const start = lines.join('\r\n')
  return length => `${start}\r\nContent-Length: ${length}\r\n\r\n`
}

/** A whole POST as bytes. */
export function post(head: Head, message: object): Buffer {
  const body = JSON.stringify(message)
  return Buffer.from(headFor(head)(Buffer.byteLength(body)) + body)
}

type Endpoint = Pick<Head, 'port' | 'contender' | 'revision'>

/** The first exchange with a server: `initialize`, or `server/discover` at 2026-07-28. */
export async function greet(connection: HttpConnection, endpoint: Endpoint): Promise<HttpAnswer> {
  const message = opening(endpoint.revision, nextId(), endpoint.contender.handshake)
  const bytes = post({ ...endpoint, method: String(message.method) }, message)
  const answer = await within(STEP_MS, endpoint.contender.name, connection.exchange(bytes))
  expectStatus(answer, 200)
  return answer
}

/** Opens a session on this connection and returns its id; there is none at 2026-07-28. */
export async function openSession(connection: HttpConnection, endpoint: Endpoint): Promise<string | undefined> {
  const answer = await greet(connection, endpoint)
  if (endpoint.revision === '2026-07-28') return undefined
  const session = /\r\nmcp-session-id: *([^\r]+)/i.exec(answer.head)?.[1]
  const ready = { ...endpoint, session, method: initialized.method }
  expectStatus(await connection.exchange(post(ready, initialized)), 202)
  return session
}

export function expectStatus(answer: HttpAnswer, status: number): void {
  if (answer.status === status) return
  throw new Error(`HTTP ${answer.status} instead of ${status}: ${answer.body.toString('utf8', 0, 200)}`)
}
