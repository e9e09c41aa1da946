/**
 * The client side of a WebSocket on Node: opens the socket, obtains credentials for its handshake where the server asks for
 * them, and explains why a handshake failed. The connection itself is `connection.ts`.
 */
import type { IncomingMessage } from 'node:http'
import { type Clock, realClock } from '../../core/clock.ts'
import { type CredentialHeaders, type Credentials, wantsCredentials } from '../../core/credentials.ts'
import { settlesWithin } from '../../core/deadlines.ts'
import { type Connection, ConnectionError } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { type CarrierLimits, clientCarrierLimits } from '../framing/limits.ts'
import { unreachableError } from '../unreachable.ts'
import { subprotocol, WebSocketConnection, type WebSocketSettings } from './connection.ts'
import { loadWs } from './ws.ts'

/** The options of a client's WebSocket. */
export interface WebSocketClientOptions extends WebSocketSettings {
  /** Sent with the handshake, for example `authorization`. */
  readonly headers?: Readonly<Record<string, string>>
  readonly limits?: Partial<CarrierLimits>
  /** The longest wait for the server to answer the handshake. Default 10 s. */
  readonly handshakeMs?: number
  /** Supplies credentials for the handshake, and new ones if those are refused. */
  readonly authorizer?: Credentials
}

/**
 * Connects to a server at a `ws:` or `wss:` address. `start` opens the socket, and offers the subprotocol `mcp`; a
 * server that knows no subprotocols is asked again without.
 *
 * @example
 * const connection = webSocketClientConnection('wss://example.com/ws', { headers: { authorization: 'Bearer …' } })
 */
export function webSocketClientConnection(url: string | URL, options: WebSocketClientOptions = {}): Connection {
  const address = addressOf(url)
  const open = (connection: WebSocketConnection) => openSocket(connection, address, options)
  return new WebSocketConnection({ limits: clientCarrierLimits(options.limits), serving: false, open }, options)
}

/** Checks the scheme of the address. */
function addressOf(url: string | URL): URL {
  const address = URL.canParse(url) ? new URL(url) : undefined
  if (address?.protocol === 'ws:' || address?.protocol === 'wss:') return address
  throw new ConnectionError(
    'refused',
    `${clip(String(url))} is not the address of a WebSocket. Give one that begins with ws:// or wss://`,
  )
}

type Ws = Awaited<ReturnType<typeof loadWs>>

/** Opens the socket; a failure ends the connection. Without the package nobody is asked for credentials. */
async function openSocket(connection: WebSocketConnection, url: URL, options: WebSocketClientOptions): Promise<void> {
  try {
    await shake(await loadWs(), connection, url, options)
  } catch (error) {
    const reason = error instanceof ConnectionError ? error : unreachable(url, error)
    connection.fail(reason)
    throw reason
  }
}

/** The most handshakes, whatever the authorizer decides. */
const mostTries = 8

/**
 * Repeats the handshake with new credentials while the server refuses those sent. A refused handshake has opened nothing, so
 * repeating it is safe.
 */
async function shake(ws: Ws, connection: WebSocketConnection, url: URL, options: WebSocketClientOptions): Promise<void> {
  const { authorizer } = options
  // Credentials are bound to HTTP addresses, and the handshake is an HTTP request.
  const address = new URL(url.href.replace(/^ws/, 'http'))
  const gone = new AbortController()
  if (authorizer !== undefined) void connection.gone.then(() => gone.abort())
  for (let times = 1; ; times++) {
    const sent = await authorizer?.headers('GET', address)
    const handed = sent === undefined ? options : { ...options, headers: { ...options.headers, ...sent } }
    try {
      const outcome = await handshake(ws, connection, url, [subprotocol], handed)
      if (outcome === 'no-subprotocol') await handshake(ws, connection, url, [], handed)
      return
    } catch (error) {
      if (authorizer === undefined || times > mostTries || !isRefusal(error)) throw error
      connection.hold(true)
      await improve(authorizer, error, sent, times, gone.signal)
      connection.hold(false)
    }
  }
}

/** True if the server refused the handshake for its credentials. */
function isRefusal(error: unknown): error is ConnectionError & { readonly status: number } {
  if (!(error instanceof ConnectionError) || error.status === undefined) return false
  return wantsCredentials(error.status, error.headers?.['www-authenticate'])
}

/** Asks the authorizer for better credentials. */
async function improve(
  authorizer: Credentials,
  { status, headers }: ConnectionError & { readonly status: number },
  sent: CredentialHeaders | undefined,
  times: number,
  signal: AbortSignal,
): Promise<void> {
  try {
    await authorizer.refused({ status, header: name => headers?.[name], sent, times, signal })
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : 'The credentials could not be obtained'
    throw new ConnectionError('unauthorized', message, { status, cause })
  }
}

/** `no-subprotocol`: the server selected none, which `ws` treats as an error. */
type Outcome = 'open' | 'no-subprotocol'

/** One attempt to open the socket. */
function handshake(
  ws: Ws,
  connection: WebSocketConnection,
  url: URL,
  protocols: readonly string[],
  { headers = {}, limits, handshakeMs = 10_000, clock = realClock }: WebSocketClientOptions,
): Promise<Outcome> {
  const settings = { headers, maxPayload: clientCarrierLimits(limits).frameBytes, handshakeTimeout: handshakeMs }
  return new Promise((resolve, reject) => {
    const socket = ws.connect(url, protocols, settings)
    socket.on('upgrade', ({ socket: stream }) => {
      socket.on('open', () => {
        connection.opened(stream)
        resolve('open')
      })
    })
    socket.on('unexpected-response', async (_request, response) => {
      reject(await refusalOf(response, clock))
      socket.terminate()
    })
    socket.on('error', error => {
      if (protocols.length > 0 && error.message === 'Server sent no subprotocol') resolve('no-subprotocol')
      else reject(unreachable(url, error))
    })
    connection.attach(socket)
  })
}

function unreachable(url: URL, cause: unknown): ConnectionError {
  const code = isRecord(cause) && typeof cause.code === 'string' ? cause.code : undefined
  const why = cause instanceof Error && cause.message !== '' ? cause.message : (code ?? 'unknown reason')
  return unreachableError(url, code, why, cause)
}

/** The error for a handshake that was answered with another status than 101. */
async function refusalOf(response: IncomingMessage, clock: Clock): Promise<ConnectionError> {
  const status = response.statusCode ?? 0
  const why = await explanation(response, clock)
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(response.headers)) if (typeof value === 'string') headers[name] = value
  const message = `The server refused the WebSocket with HTTP status ${status}${why === '' ? '' : `: ${clip(why)}`}`
  return new ConnectionError('status', message, { status, headers })
}

const explanationBytes = 4096
const explanationMs = 1000

/** The error message in the body, if the body is short and arrives in time. */
async function explanation(response: IncomingMessage, clock: Clock): Promise<string> {
  let body = ''
  async function read(): Promise<void> {
    for await (const text of response.setEncoding('utf8')) {
      body += text
      if (body.length > explanationBytes) return
    }
  }
  await settlesWithin(read(), explanationMs, clock)
  try {
    const value: unknown = JSON.parse(body)
    const error = isRecord(value) ? value.error : undefined
    return isRecord(error) && typeof error.message === 'string' ? error.message : ''
  } catch {
    return ''
  }
}
