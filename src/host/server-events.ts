/**
 * Events of servers (`server.event`) that the config subscribes to: each becomes an event of the inbox, as one that is pushed by MCP Live
 * does. What was taken in is remembered by its cursor, so nothing is lost while the server or the host is away. Events and cursor are of
 * the program that is connected: another one that gets its name begins anew.
 */
import type { Client } from '../client/client.ts'
import { type Clock, pauseFor } from '../core/clock.ts'
import { type Why, why } from '../core/suggestion.ts'
import type { PushAnswer, PushEvent } from '../features/live/push-events/messages.ts'
import type { ServerEvent } from '../features/reliability/events/client.ts'
import { clip } from '../jsonrpc/limits.ts'
import type { Note } from '../policy/audit/book.ts'
import { messageOf, put, type Store } from '../stores/store.ts'
import type { HostServer } from './servers/server.ts'

interface ServerEventsParts {
  readonly store: Store
  readonly clock: Clock
  /** The names of events that are subscribed to, by server. */
  readonly names: (server: string) => readonly string[]
  /** A digest of what is connected; undefined where nothing is known but the name. */
  readonly identityOf: (server: string) => string | undefined
  /** Whether the server of this name is reached by this client now. */
  readonly isConnected: (server: string, client: Client) => boolean
  /** `subscription`: the name of the server's event. */
  readonly accept: (server: string, event: PushEvent, subscription: string) => Promise<PushAnswer>
  readonly note: (note: Note) => void
}

interface Following {
  readonly client: Client
  readonly names: string
  readonly stop: AbortController
  readonly done: Promise<void>
}

/** What was last taken in of a server, and from which program. */
interface Taken {
  readonly cursor: string
  readonly identity: string | undefined
}

/** After something went wrong while events were taken in. */
const restMs = 5_000

/** Follows the events that the config subscribes to, and hands each to the inbox. */
export class ServerEvents {
  readonly #parts: ServerEventsParts
  readonly #following = new Map<string, Following>()
  #closed = false

  constructor(parts: ServerEventsParts) {
    this.#parts = parts
  }

  /** A server came up, went down, or other events of it are wanted. */
  changed({ name, client }: HostServer): void {
    const names = this.#parts.names(name)
    const before = this.#following.get(name)
    if (before !== undefined && before.client === client && before.names === names.join('\n')) return
    before?.stop.abort(new Error('The events are no longer followed'))
    this.#following.delete(name)
    if (client === undefined || names.length === 0 || this.#closed) return
    const stop = new AbortController()
    const done = (before?.done ?? Promise.resolve()).then(() => this.#follow(name, client, names, stop.signal))
    this.#following.set(name, { client, names: names.join('\n'), stop, done })
  }

  async close(): Promise<void> {
    this.#closed = true
    const all = [...this.#following.values()]
    for (const { stop } of all) stop.abort(new Error('The host is being closed'))
    await Promise.allSettled(all.map(({ done }) => done))
  }

  async #follow(server: string, client: Client, names: readonly string[], signal: AbortSignal): Promise<void> {
    const { clock, note, isConnected } = this.#parts
    const about = { server, kind: 'events', detail: clip(names.join(', '), 200) } as const
    while (!signal.aborted && isConnected(server, client)) {
      try {
        const after = await this.#cursor(server)
        const events = client.events(names, { signal, ...(after !== undefined && { after }) })
        await events.ready
        note({ ...about, outcome: 'success', rule: `config.${server}.events` })
        for await (const event of events) if (!(await this.#take(server, client, event, signal))) return
        return
      } catch (error) {
        if (signal.aborted) return
        note({ ...about, outcome: 'failure', why: unheard(server, error) })
        await pauseFor(clock, restMs, signal).catch(() => undefined)
      }
    }
  }

  /**
   * The cursor moves when the inbox has the event, or has refused it for good. False: the connection that it came by is over. Then it
   * is not taken, for by now another program may have the name; the one that sent it still has it.
   */
  async #take(server: string, client: Client, event: ServerEvent, signal: AbortSignal): Promise<boolean> {
    const { clock, store, accept, identityOf, isConnected } = this.#parts
    const pushed = pushOf(event)
    for (;;) {
      if (!isConnected(server, client)) return false
      const identity = identityOf(server)
      const answer = await accept(server, pushed, event.event)
      if (answer.accepted || answer.retryAfterMs === undefined) {
        await store.commit([put(cursorKey(server), JSON.stringify({ cursor: event.cursor, identity } satisfies Taken))])
        return true
      }
      await pauseFor(clock, answer.retryAfterMs, signal)
    }
  }

  /** A cursor of another program says nothing to this one. */
  async #cursor(server: string): Promise<string | undefined> {
    const entry = await this.#parts.store.get(cursorKey(server))
    const taken: Taken | undefined = entry && JSON.parse(entry.value)
    return taken?.identity === this.#parts.identityOf(server) ? taken?.cursor : undefined
  }
}

function cursorKey(server: string): string {
  return `event-cursor/${encodeURIComponent(server)}`
}

/** As MCP Live has it. Rules and budgets know it as the feature set `events/NAME`. */
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

function unheard(server: string, error: unknown): Why {
  const message = `The events of ${clip(server)} cannot be heard: ${clip(messageOf(error), 300)}`
  return why('EVENTS_UNHEARD', `config.${server}.events`, message, 'Correct "events" in the entry of the server, or remove it')
}
