/**
 * Hearing of changes on every wire. Session servers tell of lists unasked and of resources after a subscribe; stateless ones
 * only on a listen request, which dies with its connection and is made anew. Whatever has to be set up with the server is
 * set up once, however many listen, and let go when the last one stops.
 */
import { backoffMs, isFinalError, pause, steadyMs } from '../../../engine/backoff.ts'
import type { ClientSession } from '../../../engine/client-feature.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Id } from '../../../jsonrpc/message.ts'
import { subscribe, unsubscribe } from '../resources/messages.ts'
import {
  AnnouncementReader,
  type Announcements,
  type ChangeQueue,
  type ChangeSubscription,
  maybeMissed,
} from './announcements.ts'
import { type ListenFilter, listen } from './messages.ts'

/** The lists of a server that can change. */
export type ChangeKind = 'tools' | 'prompts' | 'resources'

/** Options of `changes`. */
export interface FollowOptions {
  /** Ends the iteration. */
  readonly signal?: AbortSignal
  /** Further lists to follow with the same listen request. Default: none. */
  readonly beside?: readonly ChangeKind[]
}

/** Options of `resourceUpdates`. */
export interface WatchOptions {
  /** Ends the iteration. */
  readonly signal?: AbortSignal
  /** Called when the server has accepted the subscription, from when on no update is missed, and also when it has refused it. */
  readonly onWatched?: () => void
}

const filters = {
  tools: { toolsListChanged: true },
  prompts: { promptsListChanged: true },
  resources: { resourcesListChanged: true },
} as const

/** What several readers share. */
interface Hold {
  readonly key: string
  readonly topics: readonly string[]
  readonly filter: ListenFilter
  readonly followers: Set<ChangeQueue>
  readonly stop: AbortController
  /** Settles when the server has taken it up, or will not. */
  readonly held: PromiseWithResolvers<void>
}

/** What is set up with the server so that changes are heard of. */
export class Changes {
  readonly #session: ClientSession
  readonly #hub: Announcements
  readonly #holds = new Map<string, Hold>()
  /** By the id of a listen request, as text: one wire writes it as such. */
  readonly #acknowledged = new Map<string, (honoured: ListenFilter) => void>()

  constructor(session: ClientSession, hub: Announcements) {
    this.#session = session
    this.#hub = hub
  }

  /** Yields once for each announced change of a list. `beside`: lists that are followed too, and heard of in the same way. */
  ofList(
    kind: ChangeKind,
    signal: AbortSignal | undefined,
    beside: readonly ChangeKind[] = [],
  ): AsyncGenerator<void, void, undefined> {
    const kinds = beside.includes(kind) ? beside : [kind, ...beside]
    const filter = Object.assign({}, ...kinds.map(each => filters[each])) as ListenFilter
    const open = (): ChangeSubscription => this.#follow(kinds, filter, this.#hub.follow(kind, signal))
    return new AnnouncementReader(open, () => undefined, signal)
  }

  /** Yields the URI of each announced update of a resource, or of a part of it. `held`: told when the server has taken it up, or will not. */
  ofResource(uri: string, signal: AbortSignal | undefined, held?: () => void): AsyncGenerator<string, void, undefined> {
    const wants = (updated: string): boolean => concerns(uri, updated)
    const filter = { resourceSubscriptions: [uri] }
    const open = (): ChangeSubscription => {
      const followed = this.#follow(['updated'], filter, this.#hub.follow('updated', signal, wants))
      if (held !== undefined) void this.#holds.get(JSON.stringify(filter))?.held.promise.then(held)
      return followed
    }
    return new AnnouncementReader(open, updated => (updated === maybeMissed ? uri : updated), signal)
  }

  /** The server has said what of a listen request it will do. */
  acknowledge(honoured: ListenFilter, id: Id | undefined): void {
    this.#acknowledged.get(String(id))?.(honoured)
  }

  /** Sets up what is needed to hear of it, unless somebody has. */
  #follow(topics: readonly string[], filter: ListenFilter, following: ChangeQueue): ChangeSubscription {
    const key = JSON.stringify(filter)
    const hold = this.#holds.get(key) ?? this.#wider(filter) ?? this.#hold(key, topics, filter)
    hold.followers.add(following)
    const close = (): void => {
      following.close()
      hold.followers.delete(following)
      if (hold.followers.size === 0) this.#release(hold)
    }
    return { following, close }
  }

  /** What was set up for more lists than these. */
  #wider(filter: ListenFilter): Hold | undefined {
    if (filter.resourceSubscriptions !== undefined) return undefined
    const members = Object.keys(filter) as (keyof ListenFilter)[]
    for (const hold of this.#holds.values()) if (members.every(member => hold.filter[member] === true)) return hold
    return undefined
  }

  #hold(key: string, topics: readonly string[], filter: ListenFilter): Hold {
    const hold: Hold = { key, topics, filter, followers: new Set(), stop: new AbortController(), held: Promise.withResolvers() }
    this.#holds.set(key, hold)
    this.#setUp(hold).catch(error => this.#fail(hold, error))
    return hold
  }

  #fail(hold: Hold, error: unknown): void {
    this.#release(hold)
    for (const following of hold.followers) following.end(error)
  }

  #release(hold: Hold): void {
    hold.held.resolve()
    if (this.#holds.get(hold.key) === hold) this.#holds.delete(hold.key)
    hold.stop.abort()
  }

  async #setUp(hold: Hold): Promise<void> {
    const { revision } = this.#session.opened
    if (revision.era === 'request') return this.#listen(hold)
    const uri = hold.filter.resourceSubscriptions?.[0]
    if (uri !== undefined && subscribe.in.includes(revision.id)) return this.#subscribe(hold, uri)
    hold.held.resolve()
  }

  async #subscribe(hold: Hold, uri: string): Promise<void> {
    const session = this.#session
    const { stop } = hold
    const forget = session.onReopen(() => void this.#subscribeAgain(hold, uri))
    stop.signal.addEventListener('abort', forget, { once: true })
    await session.request(subscribe, { uri })
    hold.held.resolve()
    const leave = (): void => {
      if (session.opened.conversation.ended || !session.intact) return
      session.request(unsubscribe, { uri }).catch(error => session.engine.trace('unsubscribe-failed', error))
    }
    if (stop.signal.aborted) leave()
    else stop.signal.addEventListener('abort', leave, { once: true })
  }

  /** In a new session: until it holds, or the server refuses, or there is yet another session. */
  async #subscribeAgain(hold: Hold, uri: string): Promise<void> {
    const { engine, opened } = this.#session
    const { signal } = hold.stop
    for (let failures = 1; !signal.aborted && this.#session.opened === opened; failures++) {
      try {
        await this.#session.request(subscribe, { uri })
        // What happened before it held went unheard.
        return this.#tell(hold, uri)
      } catch (error) {
        engine.trace('subscribe-failed', error)
        if (opened.conversation.ended) return
        if (isFinalError(error) && this.#session.intact) return this.#fail(hold, error)
        await pause(engine.clock, backoffMs(failures), signal)
      }
    }
  }

  /** Keeps a listen request open; ends when nobody follows any more, throws when the server will not have it. */
  async #listen(hold: Hold): Promise<void> {
    const { signal } = hold.stop
    const { engine } = this.#session
    for (let failures = 0, tries = 0; !signal.aborted; tries++) {
      const began = engine.clock.now()
      try {
        await this.#listenOnce(hold, tries > 0)
      } catch (error) {
        if (signal.aborted || this.#session.opened.conversation.ended) return
        if (isFinalError(error)) throw error
        engine.trace('listen-broken', error)
      }
      failures = engine.clock.now() - began > steadyMs ? 0 : failures + 1
      if (!signal.aborted) await pause(engine.clock, backoffMs(failures), signal)
    }
  }

  #tell({ topics }: Hold, subject?: string): void {
    for (const topic of topics) this.#hub.tell(topic, subject)
  }

  async #listenOnce(hold: Hold, again: boolean): Promise<void> {
    const { filter, stop } = hold
    const { promise: refused, reject } = Promise.withResolvers<never>()
    let key = ''
    const onSent = (id: Id): void => {
      key = String(id)
      this.#acknowledged.set(key, honoured => {
        if (!honours(filter, honoured)) return reject(notAnnounced(filter))
        hold.held.resolve()
        // What happened in between went unheard: better one look too many than one change missed.
        if (again) this.#tell(hold)
      })
    }
    const own = new AbortController()
    const options = {
      signal: AbortSignal.any([stop.signal, own.signal]),
      timeoutMs: Number.POSITIVE_INFINITY,
      totalMs: Number.POSITIVE_INFINITY,
      onSent,
    }
    try {
      await Promise.race([this.#session.request(listen, { notifications: { ...filter } }, options), refused])
    } finally {
      this.#acknowledged.delete(key)
      own.abort()
    }
  }
}

/** Itself, or something below it: servers may name a part of what was subscribed to. */
function concerns(uri: string, updated: string): boolean {
  return (
    updated.startsWith(uri) && (updated.length === uri.length || uri.endsWith('/') || '/?#'.includes(updated.charAt(uri.length)))
  )
}

function honours(filter: ListenFilter, honoured: ListenFilter): boolean {
  const uri = filter.resourceSubscriptions?.[0]
  if (uri !== undefined) return honoured.resourceSubscriptions?.includes(uri) === true
  return (Object.keys(filter) as (keyof ListenFilter)[]).every(member => honoured[member] === true)
}

function notAnnounced(filter: ListenFilter): McpError {
  const uri = filter.resourceSubscriptions?.[0]
  const what =
    uri === undefined ? `changes of its ${Object.keys(filter)[0]?.replace('ListChanged', '')}` : `updates of ${clip(uri)}`
  return new McpError('capability-missing', `The server does not announce ${what}; poll instead`)
}
