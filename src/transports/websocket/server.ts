/**
 * The server side of WebSockets: accepts upgrade requests of a node:http server, and closes connections whose token expires or
 * is revoked. Host and Origin are checked by the listener before.
 */
import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { type Cancel, type Clock, realClock } from '../../core/clock.ts'
import type { Authorizer } from '../../core/credentials.ts'
import { settlesWithin } from '../../core/deadlines.ts'
import type { Caller, Connection, Principal } from '../../jsonrpc/connection.ts'
import type { Awaitable } from '../../jsonrpc/message.ts'
import { type CarrierLimits, serverCarrierLimits } from '../framing/limits.ts'
import type { UpgradeHandler } from '../http/listen.ts'
import { type Refusal, refuseUpgrade } from '../http/refusal.ts'
import { subprotocol, WebSocketConnection, type WebSocketSettings } from './connection.ts'
import { loadWs } from './ws.ts'

/** The result of a guard that lets a client in. */
interface Admission {
  /** Who the client is; absent for anonymous clients. */
  readonly principal?: Principal
  /** False if any token was revoked since the check, so that this one may have been revoked too. */
  isCurrent?(): boolean
  /** Whether the token is still valid. Polled while the connection is open. */
  holds?(): Awaitable<boolean>
}

/** The options of WebSockets on a listener. */
export interface WebSocketServerOptions extends WebSocketSettings {
  /**
   * Checks a request before it is answered: returns a refusal (with a status) or who is let in. Default: the caller of the
   * handler has checked Host, Origin and authorization before.
   */
  readonly guard?: (request: IncomingMessage) => Awaitable<Refusal | Admission | undefined>
  /** The longest time that the guard may take. Default 10 s. */
  readonly guardMs?: number
  /** How long a socket may stay open after its token has expired. Default 60 s. */
  readonly expiredMs?: number
  readonly limits?: Partial<CarrierLimits>
}

/**
 * Makes the handler that turns upgrade requests into connections and gives each to `accept`.
 * Clients offer the subprotocol `mcp`, or none.
 *
 * @example
 * server.on('upgrade', await webSocketUpgrade(connection => engine.accept(connection), { guard }))
 */
export async function webSocketUpgrade(
  accept: (connection: Connection) => void,
  options: WebSocketServerOptions = {},
): Promise<UpgradeHandler> {
  const limits = serverCarrierLimits(options.limits)
  const ws = await loadWs()
  const upgrade = ws.upgrade(limits.frameBytes, subprotocol)

  async function handle(request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> {
    const verdict = await admit(request, options)
    if (stream.destroyed) return
    const refusal = verdict !== undefined && 'status' in verdict ? verdict : offerRefusal(request)
    if (refusal !== undefined) return refuse(stream, refusal)
    const admission = verdict as Admission | undefined
    upgrade(request, stream, head, socket => {
      const caller = callerOf(request, stream, admission?.principal)
      const connection = new WebSocketConnection({ limits, serving: true, caller }, options)
      connection.attach(socket)
      connection.opened(stream)
      accept(connection)
      // A token may have been revoked while the upgrade was in progress.
      if (admission?.isCurrent?.() === false) connection.expire()
      if (admission !== undefined) endWith(admission, connection, stream, options)
    })
  }

  return (request, stream, head) => {
    // Before the upgrade nobody else listens, and an 'error' event without a listener would end the process.
    stream.on('error', () => stream.destroy())
    handle(request, stream, head).catch(() =>
      refuse(stream, {
        status: 500,
        message: 'Internal server error while the connection was checked; the log of the server has the cause',
      }),
    )
  }
}

/** Runs the guard, within `guardMs`. */
async function admit(request: IncomingMessage, options: WebSocketServerOptions): Promise<Refusal | Admission | undefined> {
  const { guard, guardMs = 10_000, clock = realClock } = options
  if (guard === undefined) return undefined
  const verdict = Promise.resolve(guard(request))
  if (await settlesWithin(verdict, guardMs, clock)) return verdict
  return { status: 503, message: `The check of the connection took longer than ${guardMs} ms (guardMs). Retry later` }
}

/** A guard that identifies the client by its token. */
export function authorizerGuard(authorizer: Authorizer): NonNullable<WebSocketServerOptions['guard']> {
  return async request => {
    const { headers, rawHeaders, url = '' } = request
    const repeats = (name: string): boolean =>
      rawHeaders.filter((raw, at) => at % 2 === 0 && raw.toLowerCase() === name).length > 1
    const address = request.socket.remoteAddress
    const found = await authorizer.identify(name => single(headers[name]), { url, repeats, address })
    const { epoch } = authorizer
    if (found === undefined || 'status' in found) return found
    return { principal: found, isCurrent: () => authorizer.epoch === epoch, holds: () => authorizer.holds(found) }
  }
}

/** How often an open connection checks whether its token is still valid. */
const recheckMs = 15_000

/**
 * Closes the connection when its token has expired, with a tolerance for clock differences, or is revoked before. A check that
 * fails counts as valid.
 */
function endWith(
  admission: Admission,
  connection: WebSocketConnection,
  stream: Duplex,
  { expiredMs = 60_000, clock = realClock }: WebSocketServerOptions,
): void {
  const expiresAt = admission.principal?.expiresAt
  if (expiresAt !== undefined)
    stream.once(
      'close',
      atTime(expiresAt + expiredMs, () => connection.expire(), clock),
    )
  if (admission.holds === undefined) return
  const look = async (): Promise<void> => {
    const good = await Promise.resolve(admission.holds?.()).catch(() => undefined)
    if (stream.destroyed) return
    if (good === false) connection.expire()
    else cancel = clock.setTimeout(look, recheckMs, true)
  }
  let cancel: Cancel = clock.setTimeout(look, recheckMs, true)
  stream.once('close', () => cancel())
}

/** Longer timers would fire at once: the delay is a signed 32-bit number. */
const longestTimer = 2 ** 31 - 1

/** Calls at a point in time that may be further away than one timer can wait. */
function atTime(time: number, fn: () => void, clock: Clock): Cancel {
  let cancel: Cancel
  const wait = (): void => {
    const left = time - clock.now()
    cancel = left <= 0 ? clock.setTimeout(fn, 0, true) : clock.setTimeout(wait, Math.min(left, longestTimer), true)
  }
  wait()
  return () => cancel()
}

/** Refuses a client that offers only other subprotocols: it does not expect MCP. */
function offerRefusal({ headers }: IncomingMessage): Refusal | undefined {
  const offered = headers['sec-websocket-protocol']?.split(',').map(name => name.trim())
  if (offered === undefined || offered.includes(subprotocol)) return undefined
  return {
    status: 400,
    message: `The WebSocket offers only other subprotocols. Offer ${subprotocol} (Sec-WebSocket-Protocol), or none`,
  }
}

function refuse(stream: Duplex, refusal: Refusal): void {
  refuseUpgrade(stream, refusal, STATUS_CODES[refusal.status] ?? '')
}

/** The caller of all messages on this socket. */
function callerOf({ headers }: IncomingMessage, stream: Duplex, principal: Principal | undefined): Caller {
  return {
    carrier: 'websocket',
    header: name => single(headers[name]),
    principal,
    connection: stream,
  }
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value
}
