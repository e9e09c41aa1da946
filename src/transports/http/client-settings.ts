/**
 * The options of a client over HTTP that do not depend on who makes the requests, their defaults, and the headers of every request.
 */
import { type Clock, realClock } from '../../core/clock.ts'
import { clientFrameLimits, type FrameLimits } from '../../jsonrpc/limits.ts'

export interface ClientSettings {
  /** Headers of every request, e.g. `authorization`. Those that a message brings win over these. */
  readonly headers: HeaderRecord
  readonly limits: FrameLimits
  /** How long a server may take over a message that has no answer. Default 30 s. */
  readonly deliverTimeoutMs: number
  /** How long an answer may take when the caller gave no signal of its own. Default 15 min. */
  readonly answerTimeoutMs: number
  /** How long a stream may stay open after the answer it was for. Default 1 s. */
  readonly lingerMs: number
  /** How long the farewell to the server may take. Default 2 s. */
  readonly closeTimeoutMs: number
  /** The wait before a stream is opened again, where the server names none. Default 1 s. */
  readonly retryMs: number
  /** The bounds of the wait that a server may name. Default 50 ms to 5 min. */
  readonly minRetryMs: number
  readonly maxRetryMs: number
  /** The longest wait that our own backing off leads to. Default 30 s. */
  readonly maxBackoffMs: number
  /** How often in a row an answer's stream may fail to be opened again before the answer counts as lost. Default 8. */
  readonly resumeTries: number
  readonly clock: Clock
  /** 0 … 1, spreads reconnections of many clients. */
  readonly random: () => number
}

const defaults: ClientSettings = {
  headers: {},
  limits: clientFrameLimits,
  deliverTimeoutMs: 30_000,
  answerTimeoutMs: 15 * 60_000,
  lingerMs: 1_000,
  closeTimeoutMs: 2_000,
  retryMs: 1_000,
  minRetryMs: 50,
  maxRetryMs: 5 * 60_000,
  maxBackoffMs: 30_000,
  resumeTries: 8,
  clock: realClock,
  random: Math.random,
}

export function clientSettings(options: Partial<ClientSettings>): ClientSettings {
  return { ...defaults, ...options }
}

/** Request headers as flat lists: prepared once per connection, completed per message without an object in between. */

export type HeaderRecord = Readonly<Record<string, string>>

export class HeaderTemplate {
  readonly #flat: string[] = []
  /** Where the value of each name lies. */
  readonly #places = new Map<string, number>()

  /** `own` headers belong to the carrier: `given` ones may not replace them. */
  constructor(own: HeaderRecord, given: HeaderRecord = {}) {
    for (const [name, value] of Object.entries(own)) this.#put(name, value)
    for (const [name, value] of Object.entries(given)) {
      const lower = name.toLowerCase()
      if (reserved.has(lower))
        throw new TypeError(`The header ${lower} is set by the connection; leave it out of the option headers`)
      this.#put(lower, value)
    }
  }

  /** A new list, with the headers of one message added or put in place. */
  with(more: HeaderRecord | undefined): string[] {
    const flat = this.#flat.slice()
    if (more === undefined) return flat
    for (const name in more) {
      const value = more[name] as string
      const lower = name.toLowerCase()
      const place = this.#places.get(lower)
      if (place === undefined) flat.push(lower, value)
      else flat[place] = value
    }
    return flat
  }

  #put(name: string, value: string): void {
    this.#places.set(name, this.#flat.length + 1)
    this.#flat.push(name, value)
  }
}

const reserved = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-length',
  'content-type',
  'host',
  'last-event-id',
  'mcp-session-id',
  'transfer-encoding',
])
