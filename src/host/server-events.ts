/**
 * Subscriptions of the config to events of servers (`server.event`): each event goes to the inbox like a pushed one. The cursor is stored,
 * so that nothing is lost while server or host are down. Cursors belong to the connected program: another one under the same name starts
 * anew.
 */
import type { Client } from '../client/client.ts'
import { pauseFor } from '../core/clock.ts'
import { type Why, why } from '../core/suggestion.ts'
import type { PushEvent } from '../features/live/push-events/messages.ts'
import type { ServerEvent } from '../features/reliability/events/client.ts'
import { clip } from '../jsonrpc/limits.ts'
import type { SummedNotes } from '../policy/audit/denials.ts'
import type { Policy } from '../policy/policy.ts'
import { messageOf, put } from '../stores/store.ts'
import { acceptEvent } from './connecting.ts'
import type { HostFoundation } from './foundation.ts'
import type { Inbox } from './inbox/inbox.ts'
import type { HostNotices } from './notices.ts'
import type { HostServer } from './servers/server.ts'

interface ServerEventsParts {
  readonly foundation: HostFoundation
  readonly policy: Policy
  readonly inbox: Inbox
  readonly summedNotes: SummedNotes
  readonly notices: HostNotices
}

/** One subscription. */
interface Following {
  readonly client: Client
  readonly names: string
  readonly stop: AbortController
  readonly done: Promise<void>
}

/** The stored cursor, and the program that it belongs to. */
interface StoredCursor {
  readonly cursor: string
  readonly identity: string | undefined
}

/** The pause after a failure. */
const restMs = 5_000

/** Follows the events that the config subscribes to, and passes each to the inbox. */
export class ServerEvents {
  readonly #parts: ServerEventsParts
  readonly #following = new Map<string, Following>()
  #closed = false

  constructor(parts: ServerEventsParts) {
    this.#parts = parts
  }

  /** A server connected, disconnected, or its subscriptions changed. */
  changed({ name, client }: HostServer): void {
    const names = this.#parts.foundation.servers.entry(name)?.events ?? []
    const before = this.#following.get(name)
    if (before !== undefined && before.client === client && before.names === names.join('\n')) return
    before?.stop.abort(new Error('The subscription to the events has ended'))
    this.#following.delete(name)
    if (client === undefined || names.length === 0 || this.#closed) return
    const stop = new AbortController()
    const done = (before?.done ?? Promise.resolve()).then(() => this.#follow(name, client, names, stop.signal))
    this.#following.set(name, { client, names: names.join('\n'), stop, done })
  }

  async close(): Promise<void> {
    this.#closed = true
    const all = [...this.#following.values()]
    for (const { stop } of all) stop.abort(new Error('The host is closing'))
    await Promise.allSettled(all.map(({ done }) => done))
  }

  /** Reads events until the connection ends; retries failures after a pause. */
  async #follow(server: string, client: Client, names: readonly string[], signal: AbortSignal): Promise<void> {
    const { foundation, summedNotes } = this.#parts
    const about = { server, kind: 'events', detail: clip(names.join(', '), 200) } as const
    while (!signal.aborted && this.#isConnected(server, client)) {
      try {
        const after = await this.#cursor(server)
        const events = client.events(names, { signal, ...(after !== undefined && { after }) })
        await events.ready
        summedNotes.note({ ...about, outcome: 'success', rule: `config.${server}.events` })
        for await (const event of events) if (!(await this.#take(server, client, event, signal))) return
        return
      } catch (error) {
        if (signal.aborted) return
        summedNotes.note({ ...about, outcome: 'failure', why: unheard(server, error) })
        await pauseFor(foundation.clock, restMs, signal).catch(() => undefined)
      }
    }
  }

  /**
   * Moves the cursor when the inbox has accepted or finally refused the event. False: the connection has ended, so the event is left to the
   * server, because another program may have the name now.
   */
  async #take(server: string, client: Client, event: ServerEvent, signal: AbortSignal): Promise<boolean> {
    const { clock, store } = this.#parts.foundation
    const pushed = pushOf(event)
    for (;;) {
      if (!this.#isConnected(server, client)) return false
      const identity = this.#identityOf(server)
      const answer = await acceptEvent(this.#parts, server, pushed, event.event)
      if (answer.accepted || answer.retryAfterMs === undefined) {
        await store.commit([put(cursorKey(server), JSON.stringify({ cursor: event.cursor, identity } satisfies StoredCursor))])
        return true
      }
      await pauseFor(clock, answer.retryAfterMs, signal)
    }
  }

  /** The stored cursor; ignored where it belongs to another program. */
  async #cursor(server: string): Promise<string | undefined> {
    const entry = await this.#parts.foundation.store.get(cursorKey(server))
    const taken: StoredCursor | undefined = entry && JSON.parse(entry.value)
    return taken?.identity === this.#identityOf(server) ? taken?.cursor : undefined
  }

  /** Whether this client is still the current connection of the server. */
  #isConnected(server: string, client: Client): boolean {
    return this.#parts.foundation.servers.get(server)?.client === client
  }

  /** Identifies the connected program; undefined where only the name is known. */
  #identityOf(server: string): string | undefined {
    return this.#parts.policy.admission(server, '').identity
  }
}

/** The store key of a server's cursor. */
function cursorKey(server: string): string {
  return `event-cursor/${encodeURIComponent(server)}`
}

/** The event in the form of a push. Rules and budgets see the feature set `events/NAME`. */
function pushOf({ id, event, payload, at, hint, compensates, truncated }: ServerEvent): PushEvent {
  const said = {
    event,
    payload,
    ...(hint !== undefined && { hint }),
    ...(compensates !== undefined && { compensates: `event/${compensates}` }),
    ...(truncated && { truncated: 'events before this one were lost' }),
  }
  return {
    featureSet: `events/${event}`,
    eventId: `event/${id}`,
    timestamp: at.toISOString(),
    origin: { event },
    content: [{ type: 'text', text: JSON.stringify(said) }],
  }
}

/** Why events cannot be read. */
function unheard(server: string, error: unknown): Why {
  const message = `Subscribing to the events of ${clip(server)} failed: ${clip(messageOf(error), 300)}`
  return why('EVENTS_UNHEARD', `config.${server}.events`, message, 'Correct "events" in the entry of the server, or remove it')
}
