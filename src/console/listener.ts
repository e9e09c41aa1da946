/** The HTTP listener of the console: guard, files, session, routes, stream. One request goes through here from top to bottom. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createBuckets } from '../core/bucket.ts'
import type { Clock } from '../core/clock.ts'
import { digestText } from '../core/digest.ts'
import type { Role } from './contract/session.ts'
import { ConsoleFailure } from './failure.ts'
import type { Feed } from './feed.ts'
import { topics } from './feed.ts'
import type { PageFiles } from './files.ts'
import { checkRequest, pathOf, redirectOf } from './guard.ts'
import { newNonce, securityHeaders } from './headers.ts'
import { clearCookie, cookieName, type Logins, type OpenSession, setCookie } from './login.ts'
import { readBody, readQuery } from './query.ts'
import { findRoute, type Route } from './routes.ts'
import type { ConsoleAction } from './sources/source.ts'

const base = '/api/1'
const mostBody = 1024 * 1024
/** A body that holds a token and nothing else. */
const mostToken = 4_096
const writeRate = { perSecond: 50, burst: 50 } as const
const host = '127.0.0.1'

/** What the listener serves. */
export interface ListenerParts {
  readonly clock: Clock
  readonly logins: Logins
  readonly files: PageFiles
  readonly feed: Feed
  readonly routes: ReadonlyMap<string, Route>
  /** Whether a session may see exact arguments and definitions. */
  mayRead(roles: readonly Role[]): boolean
  /** Writes into the audit log what somebody did. */
  note(action: ConsoleAction): void
  /** Told what nobody foresaw. */
  failed(error: unknown): void
}

/** An open listener. */
export interface ConsoleListener {
  readonly port: number
  close(): Promise<void>
}

/** Listens on loopback at a port, or at a free one where it is taken and may be another. */
export async function listen(parts: ListenerParts, port: number, mayMove: boolean): Promise<ConsoleListener> {
  let bound = port
  const writes = createBuckets({ ...writeRate, clock: parts.clock })
  const server = createServer({ maxHeaderSize: 16_384, requestTimeout: 30_000, headersTimeout: 10_000 }, (request, response) => {
    handle(parts, { request, response, port: bound, isFlooded: session => writes.take(session) > 0 }).catch(error =>
      fail(parts, response, error),
    )
  })
  server.maxConnections = 128
  const open = (at: number): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen(at, host, () => {
        server.off('error', reject)
        server.on('error', parts.failed)
        resolve()
      })
    })
  await open(port).catch(error => {
    if (!mayMove || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    return open(0)
  })
  bound = (server.address() as AddressInfo).port
  return {
    port: bound,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

interface Exchanged {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly port: number
  /** Too many requests that change something. */
  isFlooded(session: string): boolean
}

async function handle(parts: ListenerParts, exchange: Exchanged): Promise<void> {
  const { request, response, port } = exchange
  const { method = '', url = '', headers } = request
  const elsewhere = redirectOf({ method, url, headers }, port)
  if (elsewhere !== undefined) return void response.writeHead(302, { ...securityHeaders(newNonce()), location: elsewhere }).end()
  checkRequest({ method, url, headers }, port)
  const path = pathOf(url)
  if (path === '/api' || path.startsWith('/api/')) return answerApi(parts, exchange, path)
  if (method !== 'GET') throw new ConsoleFailure('METHOD_REFUSED', 'The page takes GET only.', 'Use the routes below /api/1.')
  const encodings = headers['accept-encoding']
  const file = await parts.files.answer(path, typeof encodings === 'string' ? encodings : '')
  if (file === undefined) throw noSuchPath()
  response.writeHead(file.status, { ...file.headers, 'content-length': file.body.length }).end(file.body)
}

async function answerApi(parts: ListenerParts, exchange: Exchanged, path: string): Promise<void> {
  const { request, response, port } = exchange
  const { method = '', url = '', headers } = request
  if (!path.startsWith(`${base}/`)) throw noSuchPath()
  const inner = path.slice(base.length)
  const isSignIn = method === 'POST' && inner === '/session'
  const session = parts.logins.find(headers, cookieName(port))
  if (method !== 'GET' && exchange.isFlooded(isSignIn ? '' : (session?.key ?? '')))
    throw new ConsoleFailure('TOO_MANY', 'Too many changes in a second.', 'Wait a second.', { retryAfter: 1_000 })
  if (isSignIn) return signIn(parts, exchange, await readText(request, mostToken))
  if (session === undefined)
    throw new ConsoleFailure(
      'SESSION_REQUIRED',
      'Nobody is signed in.',
      'Open the link that the process printed. A new one: vivarium gateway console FILE, or /console in the terminal of a host',
    )
  const search = new URL(url, `http://${host}`).searchParams
  if (method === 'GET' && inner === '/events') return openStream(parts, exchange, session, search)
  const found = findRoute(parts.routes, method, inner)
  if (found === undefined) throw noSuchPath()
  const { key, route, names } = found
  const done = (outcome: ConsoleAction['outcome'], code?: string): void => {
    const about = key.includes('approvals') ? { approval: names['id'] } : { server: names['name'] }
    const said = Object.fromEntries(Object.entries(about).filter(([, value]) => value !== undefined))
    if (route.writes && !(outcome === 'success' && route.notesItself === true))
      parts.note({ route: key, by: session.by, outcome, ...said, ...(code !== undefined && { code }) })
  }
  try {
    checkRole(route.role, session)
    const whole = parts.mayRead(session.roles)
    const query = readQuery(search, route.query)
    const given = method === 'GET' ? {} : readBody(await readText(request, mostBody), route.body)
    const answer = await route.answer({ session, whole, names, query, body: given })
    done('success')
    const also: Readonly<Record<string, string>> = key === 'DELETE /session' ? { 'set-cookie': clearCookie(port) } : {}
    await sendJson(response, route.status, answer, { ifNoneMatch: headers['if-none-match'], also })
  } catch (error) {
    const { status, problem } = ConsoleFailure.from(error)
    done(status === 403 || status === 409 ? 'refused' : 'failure', problem.code)
    throw error
  }
}

function checkRole(role: Route['role'], { roles }: OpenSession): void {
  if (role === 'any' || role === 'none' || roles.includes(role)) return
  throw new ConsoleFailure('ROLE_REQUIRED', `This needs the role ${role}.`, 'Open a link that has it.', { role })
}

async function signIn({ logins, note }: ListenerParts, { response, port }: Exchanged, text: string): Promise<void> {
  const { token } = readBody(text, { token: 'text' })
  const route = 'POST /session'
  try {
    const opened = await logins.open(String(token))
    const { by, roles, since, until } = opened.session
    note({ route, by, outcome: 'success' })
    const also = { 'set-cookie': setCookie(port, opened.token) }
    await sendJson(response, 200, { by, roles, since, until }, { ifNoneMatch: undefined, also })
  } catch (error) {
    const { code } = ConsoleFailure.from(error).problem
    // While the door is closed nothing is written, so that nobody fills the log.
    if (code === 'TOKEN_REFUSED') note({ route, by: 'somebody unknown', outcome: 'refused', code })
    throw error
  }
}

function openStream(parts: ListenerParts, { request, response }: Exchanged, session: OpenSession, search: URLSearchParams): void {
  checkRole('viewer', session)
  const { topics: wanted } = readQuery(search, { topics: 'text' }) as { readonly topics?: string }
  const chosen = wanted === undefined ? topics : wanted.split(',')
  const unknown = chosen.find(each => !topics.some(topic => topic === each))
  if (unknown !== undefined)
    throw new ConsoleFailure('INVALID_INPUT', 'There is no such topic.', `There are ${topics.join(', ')}.`, { member: 'topics' })
  const last = request.headers['last-event-id']
  parts.feed.open(
    response,
    {
      session: session.key,
      whole: parts.mayRead(session.roles),
      topics: new Set(chosen),
      lastEventId: typeof last === 'string' ? last : undefined,
    },
    securityHeaders(newNonce()),
  )
}

interface JsonOptions {
  readonly ifNoneMatch: string | undefined
  readonly also: Readonly<Record<string, string>>
}

async function sendJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  { ifNoneMatch, also }: JsonOptions,
): Promise<void> {
  const headers = { ...securityHeaders(newNonce()), 'cache-control': 'no-store', ...also }
  if (value === undefined) return void response.writeHead(204, headers).end()
  const text = JSON.stringify(value)
  const etag = `"${(await digestText(text)).slice(0, 27)}"`
  if (ifNoneMatch === etag) return void response.writeHead(304, { ...headers, etag }).end()
  const type = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), etag }
  response.writeHead(status, { ...headers, ...type }).end(text)
}

/** Tells what went wrong, and nothing that the client may not know. */
function fail({ failed }: ListenerParts, response: ServerResponse, error: unknown): void {
  const failure = ConsoleFailure.from(error)
  if (failure.status >= 500) failed(failure.cause ?? failure)
  if (response.headersSent) return void response.destroy()
  const text = JSON.stringify(failure.problem)
  const retry = failure.problem.details?.['retryAfter']
  response.writeHead(failure.status, {
    ...securityHeaders(newNonce()),
    'cache-control': 'no-store',
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    // What was not read of the body is nobody's business any more.
    connection: 'close',
    ...(typeof retry === 'number' && { 'retry-after': String(Math.ceil(retry / 1_000)) }),
  })
  response.end(text)
}

async function readText(request: IncomingMessage, most: number): Promise<string> {
  const parts: Buffer[] = []
  let length = 0
  // The connection stays open after a refusal, or the client would never read it.
  for await (const part of request.iterator({ destroyOnReturn: false })) {
    length += (part as Buffer).length
    if (length > most)
      throw new ConsoleFailure('PAYLOAD_TOO_LARGE', `The body is larger than ${most} bytes (the limit).`, 'Send less at once.')
    parts.push(part as Buffer)
  }
  return Buffer.concat(parts).toString('utf8')
}

function noSuchPath(): ConsoleFailure {
  return new ConsoleFailure('NOT_FOUND', 'There is nothing at this path.', 'See self.resources for the paths of this process.')
}
