/**
 * Who is at the page. A link carries a token that works once, for ten minutes; it becomes a session, known by a cookie. Tokens are kept as
 * hashes, so that whoever reads the memory or the store of the process cannot sign in with what he finds.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Clock } from '../core/clock.ts'
import type { Awaitable } from '../jsonrpc/message.ts'
import type { Role, Session } from './contract/session.ts'
import { ConsoleFailure } from './failure.ts'

/** All roles, in the order in which they are shown. */
export const allRoles: readonly Role[] = ['viewer', 'operator', 'approver']

/** How long a link works. */
export const linkMs = 600_000
const sessionMs = 12 * 3_600_000
const mostSessions = 32
const mostLinks = 32
/** Wrong tokens within a minute that close the door for a minute. */
const mostWrong = 10
const minuteMs = 60_000

/** Who a link signs in. */
export interface LinkGrant {
  /** The name for the audit log. */
  readonly by: string
  readonly roles: readonly Role[]
}

/** A session that is open. */
export interface OpenSession extends Session {
  /** Names it inside the process. */
  readonly key: string
}

interface LoginParts {
  readonly clock: Clock
  /** Redeems a link that another process made; undefined: there is none. */
  readonly redeem?: ((hash: string) => Awaitable<LinkGrant | undefined>) | undefined
  /** A session has ended; its streams end too. */
  ended(key: string): void
}

interface Held extends LinkGrant {
  readonly since: number
  until: number
}

/** Links, sessions, and the door that closes after wrong tokens. */
export class Logins {
  readonly #parts: LoginParts
  readonly #links = new Map<string, LinkGrant & { readonly until: number }>()
  /** By the hash of the token; the least recently used first. */
  readonly #sessions = new Map<string, Held>()
  #wrong: number[] = []
  #closedUntil = 0

  constructor(parts: LoginParts) {
    this.#parts = parts
  }

  /** Makes a token for a link. */
  newLink(grant: LinkGrant): string {
    const token = newToken()
    const [oldest] = this.#links.keys()
    if (this.#links.size >= mostLinks && oldest !== undefined) this.#links.delete(oldest)
    this.#links.set(hashOf(token), { ...grant, until: this.#parts.clock.now() + linkMs })
    return token
  }

  /** Exchanges the token of a link for a session. Throws where it is wrong, used or expired, or the door is closed. */
  async open(token: string): Promise<{ readonly token: string; readonly session: OpenSession }> {
    const now = this.#parts.clock.now()
    if (now < this.#closedUntil)
      throw new ConsoleFailure(
        'TOO_MANY',
        'Too many wrong tokens. The door is closed for a minute.',
        'Wait, then use a new link.',
        {
          retryAfter: this.#closedUntil - now,
        },
      )
    const grant = await this.#redeem(hashOf(token), now)
    if (grant === undefined) {
      this.#countWrong(now)
      throw new ConsoleFailure(
        'TOKEN_REFUSED',
        'The link is wrong, expired or was used before.',
        'Print a new one: vivarium gateway console FILE, or /console in the terminal of a host',
      )
    }
    const { by, roles } = grant
    const own = newToken()
    const [oldest] = this.#sessions.keys()
    if (this.#sessions.size >= mostSessions && oldest !== undefined) this.close(oldest)
    const held = { by, roles, since: now, until: now + sessionMs }
    this.#sessions.set(hashOf(own), held)
    return { token: own, session: { ...held, key: hashOf(own) } }
  }

  /** The session of a request, whose end moves with it; undefined where it has none. */
  find(headers: IncomingHttpHeaders, cookie: string): OpenSession | undefined {
    const token = bearerOf(headers.authorization) ?? cookieOf(headers.cookie, cookie)
    if (token === undefined) return undefined
    const key = hashOf(token)
    if (!this.alive(key)) return undefined
    const held = this.#sessions.get(key) as Held
    held.until = this.#parts.clock.now() + sessionMs
    this.#sessions.delete(key)
    this.#sessions.set(key, held)
    return { ...held, key }
  }

  /** A session by its key; throws where it is over. */
  get(key: string): OpenSession {
    const held = this.#sessions.get(key)
    if (held === undefined) throw new ConsoleFailure('SESSION_REQUIRED', 'The session is over.', 'Open a new link.')
    return { ...held, key }
  }

  /** Whether a session is still open. One that has expired is closed. */
  alive(key: string): boolean {
    const held = this.#sessions.get(key)
    if (held === undefined) return false
    if (this.#parts.clock.now() < held.until) return true
    this.close(key)
    return false
  }

  /** Ends a session. */
  close(key: string): void {
    if (this.#sessions.delete(key)) this.#parts.ended(key)
  }

  async #redeem(hash: string, now: number): Promise<LinkGrant | undefined> {
    const own = this.#links.get(hash)
    // Before anything is awaited, so that it works once.
    this.#links.delete(hash)
    if (own !== undefined) return now < own.until ? own : undefined
    return this.#parts.redeem?.(hash)
  }

  #countWrong(now: number): void {
    this.#wrong = [...this.#wrong.filter(at => at > now - minuteMs), now]
    if (this.#wrong.length < mostWrong) return
    this.#wrong = []
    this.#closedUntil = now + minuteMs
  }
}

/** 256 random bits. */
export function newToken(): string {
  return randomBytes(32).toString('base64url')
}

/** A token as it is kept. */
export function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('base64url')
}

/** The name of the cookie: cookies know no ports, so the name carries it. */
export function cookieName(port: number): string {
  return `vivarium-${port}`
}

/** The header that sets the cookie. */
export function setCookie(port: number, token: string): string {
  return `${cookieName(port)}=${token}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${sessionMs / 1_000}`
}

/** The header that takes it away. */
export function clearCookie(port: number): string {
  return `${cookieName(port)}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0`
}

function cookieOf(header: string | undefined, name: string): string | undefined {
  for (const part of header?.split(';') ?? []) {
    const [key, value] = part.trim().split('=', 2)
    if (key === name) return value
  }
  return undefined
}

function bearerOf(header: string | undefined): string | undefined {
  return /^Bearer ([\w-]{1,100})$/i.exec(header ?? '')?.[1]
}
