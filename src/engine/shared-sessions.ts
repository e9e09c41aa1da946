/**
 * Sessions that several processes serve: what is known of one lies on a store, and is read wherever the session is next named.
 * Under the digests of their ids, because an id is all that a caller needs. What a client answers goes to the process that asked.
 */
import type { Clock } from '../core/clock.ts'
import { digestText } from '../core/digest.ts'
import type { Caller } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { type Id, isRecord } from '../jsonrpc/message.ts'
import { type Capabilities, type Implementation, revisionById } from '../revisions/index.ts'
import { add, type Entry, put, remove, type Store } from '../stores/store.ts'
import { Conversation, type ConversationSlot } from './conversation.ts'
import type { Engine } from './engine.ts'
import { rememberedCaller, sessionHeader } from './sessions.ts'
import type { SharedSessions } from './sharing.ts'

interface SessionRecord {
  readonly owner?: string
  readonly revision: string
  readonly capabilities: Capabilities
  readonly info?: Implementation
  /** The processes that have it in their tables, by their numbers. Where it is not said nobody knows. */
  readonly at?: readonly number[]
  /** What features remember, by key. */
  readonly parts: Readonly<Record<string, unknown>>
}

interface SharedSessionsOptions {
  readonly engine: Engine
  readonly store: Store
  readonly clock: Clock
  readonly idleMs: number
  readonly memories: readonly ConversationSlot<unknown>[]
}

const tries = 20

/** Keeps sessions on the store, so that any process on it can serve them. */
export async function sharedSessions(options: SharedSessionsOptions): Promise<SharedSessions> {
  const known = new Map<string, Conversation>()
  const mailbox = await createMailbox({
    ...options,
    deliver: (session, message) => known.get(session)?.calls?.settle(message, undefined) === true,
    awaited: () => [...known.values()].some(({ calls }) => calls?.open === true),
  })
  return new StoredSessions(options, known, mailbox)
}

class StoredSessions implements SharedSessions {
  readonly #options: SharedSessionsOptions
  readonly #known: Map<string, Conversation>
  readonly #mailbox: Mailbox
  /** Which version of what is kept a conversation is level with. */
  readonly #versions = new WeakMap<Conversation, number>()
  /** Under which key a conversation is kept: a digest, made once and not for each request. */
  readonly #keys = new WeakMap<Conversation, string>()
  /** Those of which others know that they are served here, and those that are not any more. */
  readonly #joined = new WeakSet<Conversation>()
  readonly #givenUp = new WeakSet<Conversation>()
  readonly #stop: () => void

  constructor(options: SharedSessionsOptions, known: Map<string, Conversation>, mailbox: Mailbox) {
    this.#options = options
    this.#known = known
    this.#mailbox = mailbox
    let cancel = (): void => {}
    const plan = (): void => {
      cancel = options.clock.setTimeout(() => void this.#holdOn().finally(plan), options.idleMs / 4, true)
    }
    plan()
    this.#stop = () => cancel()
  }

  get base(): number {
    return this.#mailbox.base
  }

  async prepare(caller: Caller): Promise<void> {
    const id = caller.header?.(sessionHeader)
    if (id === undefined || id.length > longestId) return
    const { engine, store, clock, idleMs } = this.#options
    const owner = caller.principal?.id
    const known = engine.sessions.get(id, owner)
    const key = (known && this.#keys.get(known)) ?? (await keyOf(id))
    const entry = await store.get(key).catch(unreachable)
    const here = engine.sessions.get(id, owner)
    // Ended by another process, or too old.
    if (entry === undefined) return here?.persist === undefined ? undefined : engine.sessions.delete(id)
    if (here === undefined || this.#versions.get(here) !== entry.version) {
      const stored: SessionRecord = JSON.parse(entry.value)
      if (stored.owner !== owner) return
      const conversation = here ?? this.#restore(id, key, stored, caller)
      this.#level(conversation, stored, entry)
      if (!this.#joined.has(conversation) && stored.at !== undefined) return await this.#join(conversation, entry)
    }
    if ((entry.expires ?? 0) - clock.now() < idleMs * 0.9) this.#prolong(entry)
  }

  opened(conversation: Conversation): void {
    const { session } = conversation
    if (session === undefined) return
    conversation.persist = async memory => this.#persist(conversation, await keyOf(session), memory)
    void keyOf(session).then(key => this.#remember(key, conversation))
  }

  async ended(id: string): Promise<void> {
    await this.#options.store.commit([remove(await keyOf(id))])
  }

  async givenUp(conversation: Conversation): Promise<boolean> {
    this.#givenUp.add(conversation)
    const key = this.#keys.get(conversation) ?? (await keyOf(conversation.session as string))
    const { store, clock } = this.#options
    for (let attempt = 0; attempt < tries; attempt++) {
      const entry = await store.get(key)
      // Gone already, or its client has come back here meanwhile.
      if (entry === undefined || this.#known.has(key)) return false
      const stored: SessionRecord = JSON.parse(entry.value)
      const others = stored.at?.filter(each => each !== this.base)
      const ttl = (entry.expires ?? 0) - clock.now()
      if (others === undefined || others.length === stored.at?.length || ttl <= 0) return false
      const without = put(key, JSON.stringify({ ...stored, at: others }), { ifVersion: entry.version, ttl })
      const outcome = await store.commit([others.length > 0 ? without : remove(key, entry.version)])
      if (outcome.ok) return others.length === 0
    }
    return false
  }

  async pass(conversation: Conversation, message: Readonly<Record<string, unknown>>): Promise<boolean> {
    if (conversation.session === undefined) return false
    return this.#mailbox.pass(await keyOf(conversation.session), message['id'] as Id, message)
  }

  nameOf(id: string): Promise<string> {
    return keyOf(id)
  }

  async refresh(name: string): Promise<void> {
    const here = this.#known.get(name)
    const entry = here === undefined ? undefined : await this.#options.store.get(name)
    if (here !== undefined && entry !== undefined) this.#level(here, JSON.parse(entry.value), entry)
  }

  close(): void {
    this.#stop()
    this.#mailbox.close()
  }

  #restore(id: string, key: string, stored: SessionRecord, caller: Caller): Conversation {
    const { engine } = this.#options
    const conversation = new Conversation(rememberedCaller(caller), id, undefined)
    const revision = revisionById(stored.revision as Parameters<typeof revisionById>[0])
    conversation.peer = { revision, capabilities: stored.capabilities, info: stored.info, logLevel: undefined }
    conversation.ready = true
    conversation.persist = memory => this.#persist(conversation, key, memory)
    engine.sessions.add(conversation)
    this.#remember(key, conversation)
    return conversation
  }

  #remember(key: string, conversation: Conversation): void {
    if (conversation.ended) return
    this.#keys.set(conversation, key)
    this.#known.set(key, conversation)
    conversation.onEnd(() => this.#known.delete(key))
  }

  /** Says that it is served here too, so that it does not end when another process gives it up. Once for each session that comes here. */
  async #join(conversation: Conversation, found: Entry): Promise<void> {
    const { engine, store, idleMs } = this.#options
    let entry: Entry | undefined = found
    for (let attempt = 0; attempt < tries && entry !== undefined; attempt++) {
      const stored: SessionRecord = JSON.parse(entry.value)
      const value = JSON.stringify({ ...stored, at: joined(stored.at ?? [], this.base) })
      // Until it is said, the next request tries again.
      this.#versions.delete(conversation)
      const outcome = await store.commit([put(entry.key, value, { ifVersion: entry.version, ttl: idleMs })]).catch(unreachable)
      if (outcome.ok) {
        this.#joined.add(conversation)
        this.#versions.set(conversation, outcome.results[0]?.version ?? 0)
        return
      }
      entry = await store.get(entry.key).catch(unreachable)
      if (entry !== undefined) this.#level(conversation, JSON.parse(entry.value), entry)
    }
    if (entry !== undefined) throw changedOver()
    // Given up by the last that had it, while it was read here.
    engine.sessions.delete(conversation.session as string)
  }

  /** What other processes changed meanwhile holds here too. */
  #level(conversation: Conversation, { parts }: SessionRecord, { version }: Entry): void {
    if (this.#versions.get(conversation) === version) return
    this.#versions.set(conversation, version)
    // Another process has gone on with it: that its client is ready was perhaps said there.
    conversation.ready = true
    for (const memory of this.#options.memories) {
      if (memory.key === undefined || !Object.hasOwn(parts, memory.key)) continue
      memory.restore?.(conversation.recall(memory), parts[memory.key], conversation)
    }
  }

  async #persist(conversation: Conversation, key: string, memory: ConversationSlot<unknown> | undefined): Promise<void> {
    const { store, idleMs } = this.#options
    for (let attempt = 0; attempt < tries; attempt++) {
      const entry = await store.get(key)
      if (this.#givenUp.has(conversation)) return
      const before: SessionRecord = entry === undefined ? { ...recordOf(conversation), at: [] } : JSON.parse(entry.value)
      const at = before.at && joined(before.at, this.base)
      const part = memory?.key === undefined ? {} : { [memory.key]: memory.save?.(conversation.recall(memory)) }
      const expected = entry === undefined ? { ifAbsent: true } : { ifVersion: entry.version }
      const value = JSON.stringify({ ...before, at, parts: { ...before.parts, ...part } })
      const outcome = await store.commit([put(key, value, { ...expected, ttl: idleMs })])
      if (!outcome.ok) continue
      this.#joined.add(conversation)
      this.#versions.set(conversation, outcome.results[0]?.version ?? 0)
      // It gave way while it was being written.
      if (this.#givenUp.has(conversation)) await this.givenUp(conversation)
      return
    }
    throw changedOver()
  }

  /** Fails only where somebody else wrote it, which prolongs it too. */
  #prolong({ key, value, version }: Entry): void {
    const { engine, store, idleMs } = this.#options
    store
      .commit([put(key, value, { ifVersion: version, ttl: idleMs })])
      .catch(error => engine.trace('session-not-prolonged', error))
  }

  /** A session in which something runs, or on whose stream somebody listens, does not end for want of requests. */
  async #holdOn(): Promise<void> {
    const { engine, store } = this.#options
    for (const [key, conversation] of [...this.#known]) {
      if (!conversation.busy && !conversation.heard) continue
      const entry = await store.get(key).catch(error => engine.trace('session-not-prolonged', error))
      if (entry) this.#prolong(entry)
    }
  }
}

const longestId = 256
/** Processes that a session names. One that is served by more ends by its time alone, which the number of none of them says. */
const mostNamed = 16
const countless = 0

function joined(at: readonly number[], own: number): readonly number[] {
  if (at.includes(own) || at.includes(countless)) return at
  return [...at, at.length < mostNamed ? own : countless]
}

function unreachable(cause: unknown): never {
  throw new McpError('busy', 'Sessions cannot be loaded because the store is unavailable; retry in 1 s', {
    cause,
    data: { retryAfterMs: 1_000 },
  })
}

function changedOver(): McpError {
  return new McpError('busy', 'Other requests keep changing this session; retry in 1 s', { data: { retryAfterMs: 1_000 } })
}

async function keyOf(id: string): Promise<string> {
  return `sessions/${await digestText(`session ${id}`)}`
}

function recordOf({ caller, peer }: Conversation): SessionRecord {
  if (peer === undefined) throw new McpError('internal', 'A session was stored before its handshake')
  const { revision, capabilities, info } = peer
  const owner = caller.principal?.id
  return {
    ...(owner === undefined ? {} : { owner }),
    revision: revision.id,
    capabilities: isRecord(capabilities) ? capabilities : {},
    ...(info === undefined ? {} : { info }),
    parts: {},
  }
}

/**
 * Letters between processes on one store. Each has a number, and asks under ids that begin with it, so that an answer tells by
 * its id whose it is. The store's hints make it quick; while something is awaited it is looked for all the same.
 */
interface MailboxOptions {
  readonly engine: Engine
  readonly store: Store
  readonly clock: Clock
  readonly deliver: (session: string, message: Readonly<Record<string, unknown>>) => boolean
  readonly awaited: () => boolean
}

interface Mailbox {
  readonly base: number
  /** False where the id is none of another process. */
  pass(session: string, id: Id, message: Readonly<Record<string, unknown>>): Promise<boolean>
  close(): void
}

/** So many ids each process has, and so many processes have numbers of their own: together still safe integers of 15 digits. */
const idsEach = 2 ** 31
const numbers = 2 ** 18
const lookEveryMs = 1_000
const letterMs = 60_000

async function createMailbox(options: MailboxOptions): Promise<Mailbox> {
  const { store, clock, engine } = options
  const counted = await store.commit([add('replicas/count', 1)])
  const own = 1 + ((counted.ok ? (counted.results[0]?.sum ?? 0) : 0) % (numbers - 1))
  const prefix = `mail/${own}/`
  const ending = new AbortController()
  const look = async (): Promise<void> => {
    const letters = await store.scan(prefix)
    for (const { key, value } of letters) {
      const { session, message } = JSON.parse(value)
      if (!options.deliver(session, message)) engine.trace('answer-to-nothing', 'passed on')
      await store.commit([remove(key)])
    }
  }
  const looking = (): Promise<void> => look().catch(error => engine.trace('mail-unread', error))
  let cancel = (): void => {}
  const plan = (): void => {
    cancel = clock.setTimeout(() => void (options.awaited() ? looking() : Promise.resolve()).then(plan), lookEveryMs, true)
  }
  plan()
  void listen(store, prefix, ending.signal, looking).catch(error => engine.trace('mail-unread', error))
  return {
    base: own * idsEach,
    pass: async (session, id, message) => {
      const to = typeof id === 'number' ? Math.floor(id / idsEach) : 0
      if (to < 1 || to === own || to >= numbers) return false
      const key = `mail/${to}/${String(clock.now()).padStart(15, '0')}-${crypto.randomUUID()}`
      return (await store.commit([put(key, JSON.stringify({ session, message }), { ttl: letterMs })])).ok
    },
    close: () => {
      cancel()
      ending.abort()
    },
  }
}

async function listen(store: Store, prefix: string, signal: AbortSignal, look: () => Promise<void>): Promise<void> {
  for await (const _ of store.watch([prefix], signal)) await look()
}
