/**
 * The client end of one connection to a server that may be live: what it declares, how the conversation opens, and which answerer
 * handles what the server sends. Loaded only if `connect` gets the option `live`.
 */
import { unlessAborted } from '../../core/deadlines.ts'
import { quoted, type Why, why } from '../../core/suggestion.ts'
import type { SendOptions } from '../../engine/calls.ts'
import type { ClientSession } from '../../engine/client-feature.ts'
import { declaredSettings } from '../../engine/extensions.ts'
import type { Side } from '../../engine/plan.ts'
import { McpError } from '../../jsonrpc/error.ts'
import type { Awaitable, Params } from '../../jsonrpc/message.ts'
import type { AnswerContext, Answerer } from './answers/messages.ts'
import { Channels } from './channels/client.ts'
import { stateAnswerers } from './checkpoints/client.ts'
import type { StateReport, WireCallState } from './checkpoints/messages.ts'
import type { LiveCall, LiveConnection, LiveHandlers } from './client-api.ts'
import { LiveSessionLink } from './client-connection.ts'
import { answeringHandlers, deliveryAnswers, LiveListener } from './client-listener.ts'
import { PushThrottle, refusedMessageOf } from './client-refusals.ts'
import { hostLive, manifestReader, tellSelection, unavailable } from './client-selection.ts'
import { readAnnounced, readLiveState, type SelectionReply, toolSetOf, writeCallState } from './dialects/messages.ts'
import { FeatureSetRegistry } from './feature-sets/client.ts'
import {
  asCapabilities,
  liveErrors,
  liveExtension,
  manifestChanged,
  setsChanged,
  updateSets,
  type WireSelection,
} from './feature-sets/messages.ts'
import { inferenceAnswerers } from './inference/client.ts'
import { deliverLive, listeningLive } from './listen/messages.ts'
import { type ModelInfo, modelInfo } from './model-info/messages.ts'
import { pushAnswerers } from './push-events/client.ts'
import { scopeAnswerers } from './scopes/client.ts'

/** Limit of messages that wait until the server knows the selection. */
const mostWaiting = 1_000

/** MCP Live on one client connection. */
export class LiveClient {
  /** The handlers and capabilities for the engine. */
  readonly side: Side
  readonly #handlers: LiveHandlers
  /** Identifies this host on stateless wires. */
  readonly #hostId: string
  readonly #channels: Channels
  readonly #answerDelivery: ReturnType<typeof deliveryAnswers>
  readonly #stop = new AbortController()
  #session: ClientSession | undefined = undefined
  readonly #book: FeatureSetRegistry
  #link: LiveSessionLink | undefined = undefined
  #listener: LiveListener | undefined = undefined
  #readManifest: (() => void) | undefined = undefined
  /** The server is not live, or has stopped being so. */
  #plain = false
  /** The server accepts its selection only as a notification. */
  #unasked = false
  #policy: WireSelection | undefined = undefined
  // While set, data messages wait for the selection to be exchanged.
  #held: Promise<void> | undefined = undefined
  #waiting = 0
  readonly #begun: () => void
  #updates: Promise<void> = Promise.resolve()
  /** An update that has not started yet; all callers until then share it. */
  #queued: Promise<void> | undefined = undefined

  constructor(handlers: LiveHandlers, { now, newId = () => crypto.randomUUID() }: { now(): number; newId?(): string }) {
    this.#handlers = handlers
    this.#hostId = newId()
    // Held from the start: nothing may be judged before the first selection.
    this.#begun = this.#hold()
    this.#book = new FeatureSetRegistry(handlers, what => this.#diagnose(what))
    this.#channels = new Channels(this.#book, event => handlers.onPush(event), now)
    const answerers = this.#answerers(now)
    const admit = this.#telling.bind(this)
    this.#answerDelivery = deliveryAnswers(answerers, admit, this.#refused.bind(this))
    this.side = {
      handlers: [
        ...answeringHandlers(answerers, admit, () => !this.#plain),
        [deliverLive, ({ params }) => this.#listener?.deliver(params)],
        [listeningLive, ({ params }) => this.#listener?.opened(params)],
      ],
      capabilities: revision => asCapabilities(revision, hostLive(handlers)),
      errors: liveErrors,
    }
  }

  /** Undefined if the server is not live. */
  get connection(): LiveConnection | undefined {
    return this.#plain ? undefined : this.#link
  }

  // ── opening ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Runs right after the handshake; resolves when the server knows the selection, or is found not to be live. */
  async open(session: ClientSession, signal: AbortSignal | undefined): Promise<void> {
    if (this.#session === undefined) {
      const own = new Set((this.side.handlers ?? []).map(([{ name }]) => name))
      session.engine.onRefuse.add((method, params, error) => {
        if (own.has(method)) this.#refused(method, params, error)
      })
    }
    this.#session = session
    session.opened.conversation.onEnd(() => this.#close())
    try {
      await this.#begin(session, signal)
    } finally {
      this.#begun()
    }
  }

  /** Runs after each new handshake, because the server has forgotten the selection. */
  reopen(): Promise<void> {
    return this.#begin(this.#session as ClientSession, undefined).finally(this.#hold())
  }

  // Reads what the server announced and tells it the selection.
  async #begin(session: ClientSession, signal: AbortSignal | undefined): Promise<void> {
    const { capabilities, revision } = session.opened
    const listens = revision.era === 'request'
    const bound = !listens || declaredSettings({ capabilities, revision }, liveExtension) !== undefined
    const announced = bound ? readAnnounced(capabilities) : undefined
    this.#plain = announced === undefined
    if (announced === undefined) return
    this.#unasked = false
    if (this.#link === undefined) this.#attach(session, listens)
    this.#book.adopt(announced)
    await this.#exchange(signal)
  }

  // Creates what a live connection needs, on the first handshake only.
  #attach(session: ClientSession, listens: boolean): void {
    const book = this.#book
    this.#link = new LiveSessionLink({
      session,
      book,
      carrier: listens ? 'listen' : 'session',
      channels: this.#channels,
      meta: () => this.meta,
      update: () => this.update(),
    })
    this.#readManifest = manifestReader(session, this.#stop.signal, announced => this.#changed(() => book.adopt(announced)))
    if (!listens) return
    this.#listener = new LiveListener({
      session,
      hostId: this.#hostId,
      host: hostLive(this.#handlers),
      answer: this.#answerDelivery,
      disconnected: error => this.#disconnected(error),
    })
  }

  /** Selects again. Updates run one after the other; the last one counts. */
  update(): Promise<void> {
    if (this.#queued !== undefined) return this.#queued
    // Held from now on, not from the start of the update: messages that follow a change are judged by the new selection.
    const release = this.#hold()
    const begin = (): Promise<void> => {
      this.#queued = undefined
      return this.#exchange(undefined)
    }
    const next = this.#updates.then(begin).finally(release)
    this.#queued = next
    this.#updates = next.catch(() => {})
    return next
  }

  // Chooses a selection, tells the server, and reads its receipt.
  async #exchange(signal: AbortSignal | undefined): Promise<void> {
    const book = this.#book
    const session = this.#session
    if (session === undefined || this.#plain || session.opened.conversation.ended) return
    const told = book.choose()
    this.#policy = told.byRequest
    if (this.#listener !== undefined) await unlessAborted(this.#listener.select(told.byRequest), signal)
    else if (this.#unasked) await session.engine.tell(session.opened.conversation, updateSets, told.byNotice)
    else {
      const receipt = await tellSelection(session, told, book.announced.label, signal)
      if (receipt === undefined) this.#unasked = true
      else this.#receive(receipt)
    }
    book.told(told)
  }

  // A refused selection ends MCP Live on this connection.
  #receive(receipt: SelectionReply): void {
    for (const { featureSet, missing } of receipt.unavailable) {
      this.#diagnose(unavailable(featureSet, missing, path => this.#book.announced.paths.includes(path)))
    }
    if (receipt.accepted) return
    this.#plain = true
    const message = 'The server did not accept the selection of feature sets'
    if (receipt.fallback === 'close') throw new McpError('policy-refused', `${message} and asks to close the connection`)
    this.#diagnose(
      why(
        'SELECTION_REFUSED',
        'receipt',
        `${message}. The connection continues without MCP Live`,
        'Enable more feature sets of this server',
      ),
    )
  }

  // ── incoming messages ──

  #answerers(now: () => number): readonly Answerer[] {
    const handlers = this.#handlers
    const book = this.#book
    const modelOf = (): ModelInfo => {
      const { id, vendor, contextWindow, capabilities } = handlers.modelInfo()
      return { id, vendor, contextWindow, capabilities }
    }
    const throttle = new PushThrottle(now, ms => this.#session?.opened.conversation.connection?.rest?.(ms))
    return [
      { method: setsChanged, waits: false, answer: params => this.#changed(() => book.change(params)) },
      { method: manifestChanged, waits: false, answer: () => this.#readManifest?.() },
      { method: modelInfo, waits: false, answer: modelOf },
      ...pushAnswerers(book, async event => throttle.heard(await handlers.onPush(event))),
      ...scopeAnswerers(book, (request, context) => handlers.onElevate(request, context)),
      ...inferenceAnswerers(
        book,
        (request, context) => handlers.onInfer(request, context),
        () => this.#link?.hooked === true,
      ),
      ...stateAnswerers(book, handlers),
      ...this.#channels.answerers(),
    ]
  }

  /** Reports every refusal to the host; nobody else learns of it. */
  #telling(answerer: Answerer, params: Params, asked: AnswerContext): Awaitable<unknown> {
    const refused = (error: unknown): never => {
      this.#refused(answerer.method.name, params, error)
      throw error
    }
    try {
      const answer = this.#admit(answerer, params, asked)
      return answer instanceof Promise ? answer.catch(refused) : answer
    } catch (error) {
      return refused(error)
    }
  }

  // Only refusals by the gate are reported here.
  #refused(method: string, params: unknown, error: unknown): void {
    const refused = refusedMessageOf(method, params, error)
    if (refused !== undefined) this.#handlers.onRefused?.(refused)
  }

  // Too many waiting messages are refused as busy.
  #admit(answerer: Answerer, params: Params, asked: AnswerContext): Awaitable<unknown> {
    if (!answerer.waits || this.#held === undefined) return this.#answer(answerer, params, asked)
    if (this.#waiting >= mostWaiting) {
      throw new McpError(
        'busy',
        `${mostWaiting} messages already wait for the selection of feature sets (the limit). Send the message again later`,
      )
    }
    return this.#later(answerer, params, asked)
  }

  // Waits until the selection is settled; a cancelled message is dropped then.
  async #later(answerer: Answerer, params: Params, asked: AnswerContext): Promise<unknown> {
    this.#waiting++
    try {
      while (this.#held !== undefined) await this.#held
    } finally {
      this.#waiting--
    }
    return asked.signal.aborted ? undefined : this.#answer(answerer, params, asked)
  }

  #answer(answerer: Answerer, params: Params, asked: AnswerContext): Awaitable<unknown> {
    if (!this.#plain) return answerer.answer(params, asked)
    throw new McpError(
      'method-not-found',
      `MCP Live is not active on this connection, so ${answerer.method.name} is not available`,
    )
  }

  /** Applies a change of the declarations: removed sets end at once, new ones wait for a selection. */
  #changed(apply: () => void): void {
    if (!this.#book.heard || this.#plain) return
    apply()
    this.#handlers.onChanged?.(this.#book.announced.sets)
    this.update().catch(error => this.#session?.engine.trace('live-update-failed', error))
  }

  // ── what calls carry ──

  /** `_meta` with host id and selection, for stateless wires. */
  get meta(): Params | undefined {
    if (this.#listener === undefined || this.#plain || this.#policy === undefined) return undefined
    return { [liveExtension]: { hostId: this.#hostId, policy: this.#policy } }
  }

  /** The members that a call adds to its params: none if the server is not live, no state if the set may not keep any. */
  members(call: LiveCall | undefined, tool: Params | undefined): WireCallState {
    if (call === undefined || this.connection === undefined) return {}
    const { state: _, checkpoint: __, ...rest } = call
    return writeCallState(this.#keepsState(call.featureSet ?? this.toolSet(tool)) ? call : rest)
  }

  /** The same members as a copy in `_meta`, because libraries drop unknown members of params. */
  carrying(send: SendOptions, call: LiveCall | undefined, tool: Params | undefined): SendOptions {
    const members = this.members(call, tool)
    const named = this.#named(call, tool)
    if (Object.keys(members).length === 0 && named === undefined) return send
    const at = 'state' in members && call?.parent !== undefined ? { parent: call.parent } : {}
    const of = named === undefined ? {} : { featureSet: named }
    const own = { ...(this.meta?.[liveExtension] as Params | undefined), ...of, ...members, ...at }
    return { ...send, meta: { ...send.meta, [liveExtension]: own } }
  }

  /** The set that is named with a call; a server that reads it knows that missing state was not omitted by accident. */
  #named(call: LiveCall | undefined, tool: Params | undefined): string | undefined {
    const set = call === undefined || this.connection === undefined ? undefined : (call.featureSet ?? this.toolSet(tool))
    return set !== undefined && this.#keepsState(set) ? set : undefined
  }

  /** The state report in a result, if the tool's set may keep state. */
  reportIn(result: Params, call: LiveCall | undefined, tool: Params | undefined): StateReport | undefined {
    const report = this.connection === undefined ? undefined : readLiveState(result)
    const named = report?.featureSet === undefined || this.#keepsState(report.featureSet)
    return named && this.#keepsState(call?.featureSet ?? this.toolSet(tool)) ? report : undefined
  }

  /** If the set of a tool is unknown, it may be any that keeps state. */
  #keepsState(featureSet: string | undefined): boolean {
    const names = featureSet === undefined ? [...this.#book.announced.sets.keys()] : [featureSet]
    return names.some(name => this.#book.carriesState(name))
  }

  /** The set that a listed tool belongs to, if it is known. */
  toolSet(tool: Params | undefined): string | undefined {
    return this.#plain ? undefined : toolSetOf(tool, this.#book.announced.sets)
  }

  // ── helpers ──

  // Makes data messages wait; returns the function that releases them.
  #hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#held = promise
    return () => {
      if (this.#held === promise) this.#held = undefined
      resolve()
    }
  }

  #diagnose(what: Why): void {
    this.#session?.engine.trace('live', what)
    this.#handlers.onDiagnostic?.(what)
  }

  // Listening was refused for good: MCP Live ends, the connection stays.
  #disconnected(error: unknown): void {
    this.#session?.engine.trace('live-listen-refused', error)
    this.#plain = true
    const said = error instanceof Error ? error.message : String(error)
    const message = `The server rejected live/listen, so its messages no longer arrive: ${quoted(said)}`
    this.#diagnose(why('LISTEN_REFUSED', 'live/listen', message, 'Fix the reported cause, then connect again'))
  }

  #close(): void {
    this.#stop.abort()
    this.#listener?.close()
  }
}
