/** Lets each event through once, in order, or finds a gap. */
import type { Suggestion } from '../../../core/suggestion.ts'
import { isFinalError } from '../../../engine/backoff.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import {
  type EndReason,
  eventsExtension,
  suggestionFrom,
  type WireBookmark,
  type WireEvent,
  type WireSubscribed,
} from './messages.ts'

/** Something that happened at a server. All of it is what the server says: data, never an instruction. */
export interface ServerEvent {
  /** Unlike that of any other event. */
  readonly id: string
  readonly event: string
  readonly payload: Params
  readonly at: Date
  /** Give it to `events(…, { after })` to go on behind this one, in another process too. */
  readonly cursor: string
  /** What the server suggests to do about it. Nothing is done by itself. */
  readonly hint: Suggestion | undefined
  /** The id of an earlier event: what it told of was taken back. */
  readonly compensates: string | undefined
  /** Before this one something is missing that the server no longer has. */
  readonly truncated: boolean
}

/** `known`: it was there before. `gap`: something before it did not arrive. `full`: whoever reads is too slow. */
export type IntakeVerdict = 'taken' | 'known' | 'gap' | 'full'

/** Ids that are remembered, to know what comes twice. */
const remembered = 4_096

/** The events of one subscription, as far as they came. */
export class Intake {
  readonly #most: number
  readonly #seen = new Set<string>()
  readonly #unread: ServerEvent[] = []
  #cursor: string | undefined
  #lost = false

  /** `most`: events that may wait to be read. */
  constructor(cursor: string | undefined, most: number) {
    this.#cursor = cursor
    this.#most = most
  }

  /** Where to go on: all up to here has been taken in. */
  get cursor(): string | undefined {
    return this.#cursor
  }

  get unread(): number {
    return this.#unread.length
  }

  shift(): ServerEvent | undefined {
    return this.#unread.shift()
  }

  /** A subscription begins: at the cursor that was asked for, or where the server says. */
  begin(cursor: string | undefined, truncated: boolean): void {
    if (this.#cursor === undefined || truncated) this.#cursor = cursor ?? this.#cursor
    if (truncated) this.#lost = true
  }

  /** A page was read up to here. */
  pass(cursor: string, truncated: boolean): void {
    this.#cursor = cursor
    if (truncated) this.#lost = true
  }

  take(wire: WireEvent): IntakeVerdict {
    const { event_id: id, cursor, previous_cursor: previous, truncated = false } = wire
    const follows = this.#cursor === undefined || previous === this.#cursor || truncated
    if (this.#seen.has(id)) {
      if (follows) this.pass(cursor, truncated)
      return 'known'
    }
    if (!follows) return 'gap'
    if (this.#unread.length >= this.#most) return 'full'
    this.#remember(id)
    this.pass(cursor, truncated)
    this.#unread.push(eventOf(wire, this.#lost))
    this.#lost = false
    return 'taken'
  }

  bookmark({ cursor, previous_cursor: previous, truncated = false }: WireBookmark): IntakeVerdict {
    if (this.#cursor !== undefined && previous !== this.#cursor && !truncated) return 'gap'
    this.pass(cursor, truncated)
    return 'taken'
  }

  #remember(id: string): void {
    this.#seen.add(id)
    if (this.#seen.size > remembered) this.#seen.delete(this.#seen.values().next().value as string)
  }
}

function eventOf(wire: WireEvent, truncated: boolean): ServerEvent {
  const { event_id: id, event, payload, timestamp, cursor, action_hint: hint, compensates } = wire
  return {
    id,
    event,
    payload: isRecord(payload) ? payload : {},
    at: new Date(timestamp),
    cursor,
    hint: suggestionFrom(hint),
    compensates,
    truncated,
  }
}

/** The error where a server offers no such events. */
export function noEvents(names: readonly string[]): McpError {
  const wanted = names.map(name => clip(name)).join(', ')
  return new McpError(
    'capability-missing',
    `The server offers no events (${eventsExtension}), so not ${wanted}. Watch its lists by changes() or a resource by resourceUpdates(), ` +
      'or ask a tool from time to time; a server of this library offers them by server.event(name, { … })',
  )
}

export function subscriptionDenied({ reason, supported_events: supported = [] }: WireSubscribed): McpError {
  const offered = Array.isArray(supported) ? supported.filter(name => typeof name === 'string').map(name => clip(name)) : []
  const why = typeof reason === 'string' ? clip(reason, 300) : 'it gives no reason'
  return new McpError(
    'invalid-params',
    `The server denies the events: ${why}. It offers ${offered.slice(0, 20).join(', ') || 'none'}`,
    {
      data: { supported_events: offered },
    },
  )
}

export function eventsEndedError(reason: EndReason, names: readonly string[]): McpError {
  const wanted = names.map(name => clip(name)).join(', ')
  if (reason === 'withdrawn') return new McpError('capability-missing', `The server no longer offers ${wanted}`)
  return new McpError('insufficient-scope', `The right to hear ${wanted} has ended; get it again before you subscribe anew`)
}

/** The server knows no such method. */
export function noMethod(error: unknown): boolean {
  return error instanceof McpError && (error.kind === 'method-not-found' || error.code === -32601)
}

/** Whether it may go better the next time. */
export function retries(error: unknown): boolean {
  return !isFinalError(error) || (error instanceof McpError && error.kind === 'busy')
}
