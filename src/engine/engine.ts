/**
 * One role's engine: the compiled plan, the conversations, and what happens at the ends of an exchange. `receive.ts` is
 * the walk; this is what it walks through. Server and client are the same class with roles swapped.
 */
import { type Clock, realClock } from '../core/clock.ts'
import { createDeadlines, type Deadlines } from '../core/deadlines.ts'
import type { Trace } from '../core/log.ts'
import { type Acceptor, type Caller, type Connection, ConnectionError, type Lane, type Principal } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { clip } from '../jsonrpc/limits.ts'
import type { Awaitable, Id, Params } from '../jsonrpc/message.ts'
import type { Capabilities, Implementation, Peer, Revision, SupportedRevisions } from '../revisions/index.ts'
import { pushAsking, type QuestionChannel } from './asking.ts'
import type { SendOptions } from './calls.ts'
import { Conversation, type ConversationSlot, DuplexLane, InFlight } from './conversation.ts'
import { disconnect, failedByStop, stoppedFailure } from './disconnect.ts'
import { answerHeaders, completeResult, type Exchange, limitHeaders } from './exchange.ts'
import { merged } from './extensions.ts'
import type { Limits } from './limits.ts'
import { faultError, refusalData, unknownPeer } from './malformed-messages.ts'
import type { Method, PeerRole } from './method.ts'
import { Outcome, unwritable } from './outcome.ts'
import { Plan, type Side } from './plan.ts'
import { Hooks } from './ports.ts'
import { receiveFrame, refuse, refuseMalformed } from './receive.ts'
import { sendNotification, sendRequest } from './send.ts'
import { endSession, memorySessions, openServerStream, SessionLookup, type Sessions, sessionHeader } from './sessions.ts'
import { processGoneAnswer, SessionSharing, type SharedParts } from './sharing.ts'
import { completed, type Layer } from './stages.ts'

/** What an engine is made of. */
export interface EngineOptions {
  readonly role: PeerRole
  readonly info: Implementation
  readonly spoken: SupportedRevisions
  readonly limits: Limits
  /** More may come. */
  readonly sides: Side[]
  readonly middleware?: Layer[]
  readonly clock?: Clock
  /** Makes session ids: at least 128 bits of randomness. */
  readonly newId?: () => string
  /** False: session wires are served over HTTP without sessions. */
  readonly sessions?: boolean
  /** Where other processes serve the same sessions. */
  readonly shared?: SharedParts
  readonly trace?: Trace
  /** Tells the other end that we gave up on a call. */
  readonly sendCancel?: (engine: Engine, conversation: Conversation, id: Id, reason: string) => void
  /** How questions are asked on wires where they travel inside results. */
  readonly asking?: (exchange: Exchange) => QuestionChannel
  /** How long the other end may take over a question. */
  readonly askTimeoutMs?: number
  /** The failure that a request is answered with, for what was thrown. */
  readonly explain?: (exchange: Exchange, thrown: unknown) => unknown
  /** The same for what has become no exchange: all that is known is who sent it. */
  readonly explainTo?: (peer: Peer, thrown: unknown) => unknown
  readonly onConversation?: (conversation: Conversation) => void
}

const final = { final: true } as const

/** One role of the protocol, over any number of carriers and conversations. */
export class Engine extends Hooks implements Acceptor {
  readonly role: PeerRole
  readonly info: Implementation
  readonly spoken: SupportedRevisions
  readonly limits: Limits
  readonly clock: Clock
  readonly deadlines: Deadlines
  readonly sessions: Sessions
  readonly sessionLookup: SessionLookup
  readonly inFlight: InFlight
  /** Duplex conversations that are open; sessions are in their own table. */
  readonly connected = new Set<Conversation>()
  /** The wire in which we answer what could not be placed on any. */
  readonly fallback: Revision
  readonly trace: Trace
  readonly explainTo: (peer: Peer, thrown: unknown) => unknown
  /** Undefined where no other process serves the same sessions. */
  readonly sharing: SessionSharing | undefined
  readonly #options: EngineOptions
  readonly #metas: (Record<string, unknown> | undefined)[] = []
  /** The same for requests that declare more, by what they declare. */
  #declared = new WeakMap<Capabilities, (Record<string, unknown> | undefined)[]>()
  #plan: Plan | undefined = undefined
  #outcome: Outcome | undefined = undefined
  #logLevel: string | undefined = undefined

  constructor(options: EngineOptions) {
    super()
    this.#options = options
    this.role = options.role
    this.info = options.info
    this.spoken = options.spoken
    this.limits = options.limits
    this.clock = options.clock ?? realClock
    this.deadlines = createDeadlines({ clock: this.clock })
    this.sessions = memorySessions(this.limits, this.clock, (conversation, how) => {
      this.sessionEnded(conversation.session as string, how === 'for all')
      if (how === 'given up') this.sharing?.giveUp(conversation)
    })
    this.inFlight = new InFlight(this.limits)
    this.sessionLookup = new SessionLookup(options.spoken, this.sessions, options)
    this.fallback = (options.spoken.requests[0] ?? options.spoken.sessions[0] ?? options.spoken.all[0]) as Revision
    this.trace = options.trace ?? (() => {})
    this.explainTo = options.explainTo ?? ((_peer, thrown) => thrown)
    this.sharing = options.shared === undefined ? undefined : new SessionSharing(this, options.shared)
  }

  /** Compiled at the first message, so that what is registered before it is in. */
  get plan(): Plan {
    this.#plan ??= new Plan(this.role, this.#options.sides, this.#options.middleware ?? [])
    return this.#plan
  }

  get outcome(): Outcome {
    this.#outcome ??= new Outcome(this.plan, this.info, this.spoken.all)
    return this.#outcome
  }

  /** One more side, from a room above. */
  extend(side: Side): void {
    this.#options.sides.push(side)
    this.replan()
  }

  /** A layer was added: compile anew. */
  replan(): void {
    this.#plan = undefined
    this.#outcome = undefined
  }

  /** What this side declares at a revision. Several features may add to one capability (`extensions`). */
  capabilities(revision: Revision, caller?: Caller, peer?: Peer): Capabilities {
    return merged(this.#options.sides.map(side => side.capabilities?.(revision, caller, peer)))
  }

  // ── carriers ────────────────────────────────────────────────────────────────────────────────────────────────────

  deliver(text: string, caller: Caller, reply: Lane): void {
    if (this.sharing === undefined || caller.header?.(sessionHeader) === undefined) receiveFrame(this, text, caller, reply)
    else this.sharing.prepare(caller, reply, () => receiveFrame(this, text, caller, reply))
  }

  listen(caller: Caller, lane: Lane): Awaitable<void> {
    if (this.sharing === undefined) return openServerStream(this, caller, lane)
    return this.sharing.prepare(caller, lane, () => openServerStream(this, caller, lane))
  }

  leave(caller: Caller, reply: Lane): void {
    if (this.sharing === undefined) endSession(this, caller, reply)
    else this.sharing.prepare(caller, reply, () => endSession(this, caller, reply))
  }

  readonly refusalData: NonNullable<Acceptor['refusalData']> = (caller, refusal) => refusalData(this, caller, refusal)

  /** What features remember of a conversation and others may go on with. */
  get memories(): readonly ConversationSlot<unknown>[] {
    return this.#options.sides.flatMap(({ memories = [] }) => memories)
  }

  accept(connection: Connection): Conversation {
    const lane = new DuplexLane(connection, error => this.trace('send-failed', error))
    const caller = connection.caller ?? { carrier: connection.carrier, connection }
    const conversation = new Conversation(caller, undefined, lane)
    conversation.connection = connection
    lane.conversation = conversation
    this.connected.add(conversation)
    this.#options.onConversation?.(conversation)
    const started = connection.start({
      frame: (text, status, within) => receiveFrame(this, text, caller, lane, conversation, status, within),
      fault: fault => {
        this.trace('frame-refused', fault)
        conversation.calls?.unread(fault, this.limits.frameBytes)
        if (this.role === 'server')
          refuseMalformed(this, lane, fault.request, faultError(fault), conversation.peer ?? unknownPeer(this.fallback))
      },
      quiet: () => conversation.quiet(),
      hold: (id, held) => conversation.calls?.hold(id, held),
      released: (id, retryMs) => conversation.calls?.released(id, retryMs),
      closed: reason => {
        this.connected.delete(conversation)
        conversation.end(reason ?? new ConnectionError('lost', 'The connection was closed'))
      },
    })
    if (started !== undefined) started.catch(error => conversation.end(error))
    return conversation
  }

  /** Ends all that is open for principals that may call no longer. */
  disconnect(matches: (principal: Principal) => boolean): void {
    disconnect(this, matches)
  }

  // ── the ends of an exchange ─────────────────────────────────────────────────────────────────────────────────────

  /** The handler did not answer at once: from here on it can be cancelled. */
  began(exchange: Exchange): void {
    if (exchange.running) return
    this.inFlight.enter(exchange)
    exchange.conversation.begin(exchange)
    if (exchange.peer.revision.http.disconnectCancels && exchange.caller.carrier === 'http') {
      exchange.reply.onClose(() => exchange.leave('The caller disconnected', true))
    }
  }

  succeed(exchange: Exchange, result: unknown): void {
    // A handler that went on after its question was put off does not outvote the question.
    if (exchange.asking?.pending === true) {
      this.trace('suspension-swallowed', exchange.route.name)
      return this.#conclude(exchange, exchange.asking)
    }
    // Where layers wrap the handler it is done below them.
    if (exchange.get(completeResult) !== undefined && !exchange.begun) return this.#close(exchange, result)
    if (!this.#finish(exchange)) return
    let frame: string
    try {
      frame = this.outcome.success(exchange.id as Id, exchange.route, result)
    } catch (cause) {
      const error = this.explain(exchange, unwritable(cause))
      return refuse(this, exchange.reply, exchange.id, error, exchange.peer.revision, exchange.caller, factsOf(exchange))
    }
    const headers = exchange.get(answerHeaders)
    const limits = exchange.get(limitHeaders)
    const plain = headers === undefined && limits === undefined
    exchange.reply.send(frame, plain ? final : { final: true, headers: { ...limits, ...headers } })
  }

  fail(exchange: Exchange, error: unknown): void {
    if (exchange.asking?.pending === true) return this.#conclude(exchange, exchange.asking)
    for (const fn of this.onFail) fn(exchange, error)
    const instead = exchange.route.recover?.(exchange, error)
    if (instead !== undefined) return this.succeed(exchange, instead)
    if (!this.#finish(exchange)) return
    const told = this.explain(exchange, failedByStop(exchange, error) ? stoppedFailure() : error)
    refuse(
      this,
      exchange.reply,
      exchange.id,
      told,
      exchange.peer.revision,
      exchange.caller,
      factsOf(exchange),
      exchange.get(limitHeaders),
    )
  }

  /** The failure that a request is answered with, for what was thrown. */
  explain(exchange: Exchange, thrown: unknown): unknown {
    return this.#options.explain === undefined ? thrown : this.#options.explain(exchange, thrown)
  }

  #close(exchange: Exchange, result: unknown): void {
    this.began(exchange)
    Promise.resolve(completed(exchange, result)).then(
      done => this.succeed(exchange, done),
      error => this.fail(exchange, error),
    )
  }

  #conclude(exchange: Exchange, asking: QuestionChannel): void {
    asking.conclude().then(
      result => this.succeed(exchange, result),
      error => this.fail(exchange, error),
    )
  }

  get askTimeoutMs(): number {
    return this.#options.askTimeoutMs ?? this.limits.callTotalMs
  }

  /** How questions are asked on this exchange's wire. */
  asking(exchange: Exchange): QuestionChannel {
    if (exchange.peer.revision.asks === 'result' && this.#options.asking !== undefined) return this.#options.asking(exchange)
    return pushAsking(exchange)
  }

  /** The caller cancelled: no answer, except where the wire wants one. */
  cancelled(exchange: Exchange): void {
    const { revision } = exchange.peer
    const result = exchange.route.method.cancelled
    if (!this.#finish(exchange)) return
    if (revision.answersCancelled && result !== undefined) {
      exchange.reply.send(this.outcome.success(exchange.id as Id, exchange.route, result), final)
    } else exchange.reply.end()
  }

  /** It is answered, or whoever called is gone: what still runs for it takes no place any more. */
  vacate(exchange: Exchange): void {
    if (exchange.conversation.finish(exchange)) this.inFlight.leave(exchange)
  }

  #finish(exchange: Exchange): boolean {
    if (exchange.answered) return false
    exchange.answered = true
    if (exchange.running) this.vacate(exchange)
    return true
  }

  /** Something precedes the answer: from here on the stream may break and be re-joined, where the wire has that. */
  streaming(exchange: Exchange): void {
    if (exchange.streams) return
    exchange.streams = true
    const { session } = exchange.conversation
    const { http } = exchange.peer.revision
    if (session === undefined || !http.resume || exchange.reply.keep === undefined) return
    if (this.sharing === undefined) exchange.reply.keep(session, http.prime)
    else exchange.reply.keep(session, http.prime, processGoneAnswer(this, exchange))
  }

  // ── outbound ────────────────────────────────────────────────────────────────────────────────────────────────────

  call<P, R>(conversation: Conversation, method: Method<P, R>, params: P, options: SendOptions = {}): Promise<R> {
    const revision = conversation.peer?.revision
    if (revision === undefined)
      return Promise.reject(new McpError('not-initialized', `${method.name} cannot be sent before the handshake`))
    return sendRequest(this, conversation, revision, method, params as Params, options) as Promise<R>
  }

  /** False: nobody heard it. */
  notify<P>(conversation: Conversation, method: Method<P, undefined>, params: P, lane?: Lane): boolean {
    const sent = this.#notify(conversation, method, params, lane)
    if (typeof sent !== 'object') return sent
    sent.catch(error => this.trace('notification-lost', error))
    return true
  }

  /** Settles when the carrier has delivered it, so that what follows cannot overtake it. */
  async tell<P>(conversation: Conversation, method: Method<P, undefined>, params: P): Promise<void> {
    await this.#notify(conversation, method, params, undefined)
  }

  #notify<P>(
    conversation: Conversation,
    method: Method<P, undefined>,
    params: P,
    lane: Lane | undefined,
  ): boolean | Promise<void> {
    const revision = conversation.peer?.revision
    return revision !== undefined && sendNotification(conversation, revision, method, params as Params, lane)
  }

  cancelSent(conversation: Conversation, id: Id, reason: string): void {
    this.#options.sendCancel?.(this, conversation, id, reason)
  }

  /** What each of our requests carries on this wire; prepared once. */
  requestMeta(revision: Revision, declares?: Capabilities): Record<string, unknown> | undefined {
    if (revision.requestMeta === undefined) return undefined
    if (declares !== undefined) {
      let metas = this.#declared.get(declares)
      if (metas === undefined) {
        metas = []
        this.#declared.set(declares, metas)
      }
      metas[revision.ordinal] ??= revision.requestMeta(merged([this.capabilities(revision), declares]), this.info, this.#logLevel)
      return metas[revision.ordinal]
    }
    this.#metas[revision.ordinal] ??= revision.requestMeta(this.capabilities(revision), this.info, this.#logLevel)
    return this.#metas[revision.ordinal]
  }

  /** The log that our requests ask for, on wires where each request says so. */
  set logLevel(level: string | undefined) {
    this.#logLevel = level
    this.#metas.length = 0
    this.#declared = new WeakMap()
  }

  async close(): Promise<void> {
    this.sessions.close()
    await this.sharing?.close()
    await Promise.all([...this.connected].map(conversation => conversation.connection?.close()))
  }
}

/** What a failure in the author's own code is told with: where it was. */
function factsOf({ route: { method }, params, correlated }: Exchange): Readonly<Record<string, unknown>> {
  const name = method.nameParam === undefined ? undefined : params[method.nameParam]
  return {
    method: method.name,
    ...(typeof name === 'string' && { name: clip(name) }),
    ...(correlated !== undefined && { correlationId: correlated }),
  }
}
