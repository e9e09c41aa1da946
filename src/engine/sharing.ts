/** What an engine does beside its own tables where other processes serve the same sessions. How they are kept is loaded with the first. */
import type { ProcessLeases } from '../core/journal/process-leases.ts'
import { problem } from '../core/problem.ts'
import type { Caller, Lane } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { Awaitable } from '../jsonrpc/message.ts'
import type { Store } from '../stores/store.ts'
import type { Conversation } from './conversation.ts'
import type { Engine } from './engine.ts'
import type { Exchange } from './exchange.ts'
import { likelyPeer } from './malformed-messages.ts'
import { failureOf } from './outcome.ts'
import { refuseMalformed } from './receive.ts'

/** Sessions that several processes serve. */
export interface SharedSessions {
  /** Ids of what is asked begin after this. */
  readonly base: number
  /** Makes the session that a caller names known here, if it is one, and as others left it. */
  prepare(caller: Caller): Promise<void>
  /** A session was opened here. */
  opened(conversation: Conversation): void
  /** A session was ended by its client, for all. */
  ended(id: string): Promise<void>
  /** This process serves a session no more; true where nobody else did, and nothing is kept of it now. */
  givenUp(conversation: Conversation): Promise<boolean>
  /** An answer that nobody here waits for: true when it went to the process that asked. */
  pass(conversation: Conversation, message: Readonly<Record<string, unknown>>): Promise<boolean>
  /** By which name others know a session. */
  nameOf(id: string): Promise<string>
  /** Reads anew what others changed of a session that is known here. */
  refresh(name: string): Promise<void>
  close(): void
}

/** What processes share, each opened when first needed. */
export interface SharedParts {
  /** Called with the first session. */
  readonly sessions: () => Promise<SharedSessions>
  readonly store: () => Promise<Store>
  /** Which processes are alive. */
  readonly runners: () => Promise<ProcessLeases>
}

/** Sessions that are forgotten on the store at once. */
const atOnce = 32

/** Connects an engine with the sessions that other processes serve too. */
export class SessionSharing {
  readonly parts: SharedParts
  readonly #engine: Engine
  readonly #onClose: (() => Promise<void>)[] = []
  readonly #givenUp: Conversation[] = []
  #releasing: Promise<void> | undefined = undefined
  #starting: Promise<SharedSessions> | undefined = undefined
  #shared: SharedSessions | undefined = undefined

  constructor(engine: Engine, parts: SharedParts) {
    this.#engine = engine
    this.parts = parts
  }

  /** After which the ids of our own requests begin. */
  get base(): number {
    return this.#shared?.base ?? 0
  }

  /** Goes on when the session that the caller names is known here as others left it. */
  prepare(caller: Caller, reply: Lane, go: () => Awaitable<void>): Promise<void> {
    return this.#open()
      .then(shared => shared.prepare(caller))
      .then(go, error => this.#refuse(caller, reply, error))
  }

  /** Makes a session that was opened here known to others. */
  async keep(conversation: Conversation): Promise<void> {
    const shared = await this.#open()
    shared.opened(conversation)
    try {
      await conversation.persist?.()
    } catch (cause) {
      throw cause instanceof McpError ? cause : unreachable(cause)
    }
  }

  /** Ends a session for all. */
  end(id: string, caller: Caller, reply: Lane): void {
    this.#open()
      .then(shared => shared.ended(id))
      .then(
        () => reply.end({ status: 200 }),
        error => this.#refuse(caller, reply, error),
      )
  }

  /** Ends a session for all, where nobody waits for that. */
  forget(id: string): void {
    this.#open()
      .then(shared => shared.ended(id))
      .catch(error => this.#engine.trace('session-not-forgotten', error))
  }

  /** A session that gave way here, or was idle: what is kept of it goes too, unless others serve it. A few at a time. */
  giveUp(conversation: Conversation): void {
    this.#givenUp.push(conversation)
    this.#releasing ??= this.#giveUpAll().finally(() => {
      this.#releasing = undefined
    })
  }

  async #giveUpAll(): Promise<void> {
    for (let some = this.#givenUp.splice(0, atOnce); some.length > 0; some = this.#givenUp.splice(0, atOnce))
      await Promise.all(some.map(conversation => this.#giveUpOne(conversation)))
  }

  async #giveUpOne(conversation: Conversation): Promise<void> {
    try {
      const over = await (await this.#open()).givenUp(conversation)
      // Where something was said in it there may be streams of it, too.
      if (over && conversation.spoke) this.#engine.sessionEnded(conversation.session as string, true)
    } catch (error) {
      // Then it goes when its time is over.
      this.#engine.trace('session-not-forgotten', error)
    }
  }

  /** An answer that nobody here waits for. */
  passOn(conversation: Conversation, message: Readonly<Record<string, unknown>>, reply: Lane): void {
    this.#open()
      .then(shared => shared.pass(conversation, message))
      .then(passed => {
        if (!passed) this.#engine.trace('answer-to-nothing', 'in all processes')
      })
      .catch(error => this.#engine.trace('answer-not-passed-on', error))
      .finally(() => reply.end())
  }

  /** Called when all sessions have ended here, before what is shared is closed. */
  onClose(fn: () => Promise<void>): void {
    this.#onClose.push(fn)
  }

  /** By which name other processes know a session. */
  async nameOf(id: string): Promise<string> {
    return (await this.#open()).nameOf(id)
  }

  /** Another process has changed what is remembered of a session; perhaps its stream is here. */
  refresh(name: string): void {
    this.#shared?.refresh(name).catch(error => this.#engine.trace('session-not-refreshed', error))
  }

  async close(): Promise<void> {
    await this.#releasing
    await Promise.all(this.#onClose.map(fn => fn()))
    const started = await this.#starting?.catch(() => undefined)
    started?.close()
  }

  #open(): Promise<SharedSessions> {
    this.#starting ??= this.parts.sessions().then(
      shared => {
        this.#shared = shared
        return shared
      },
      cause => {
        this.#starting = undefined
        throw unreachable(cause)
      },
    )
    return this.#starting
  }

  #refuse(caller: Caller, reply: Lane, error: unknown): void {
    refuseMalformed(this.#engine, reply, undefined, error, likelyPeer(this.#engine, caller, undefined), caller)
  }
}

/** What is kept of sessions is out of reach: it may be back soon. */
function unreachable(cause: unknown): McpError {
  return new McpError('busy', 'Sessions cannot be loaded because the store is unavailable; retry in 1 s', {
    cause,
    data: { retryAfterMs: 1_000 },
  })
}

/** The answer to a call whose process goes before it: sent by whichever one its caller comes back to. */
export function processGoneAnswer(engine: Engine, exchange: Exchange): string {
  const gone = problem('OUTCOME_UNKNOWN', 'The process that ran this call ended before it sent a response', {
    actor: 'user',
    suggestion: 'Check whether the call had its effect before you repeat it; with its idempotency key it does not run twice',
  })
  return engine.outcome.failure(exchange.id, failureOf(engine.explain(exchange, gone)), exchange.peer.revision)
}
