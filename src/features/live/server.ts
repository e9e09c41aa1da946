/**
 * `server.featureSet`: MCP Live for authors of servers. Only what must exist synchronously is here; the runtime is loaded with the
 * first set.
 */
import type { Duration } from '../../core/clock.ts'
import { checkOptions, type KindsOf } from '../../core/options.ts'
import { problem } from '../../core/problem.ts'
import { CallContext, exchangeOf, ignoreUnhandledRejection } from '../../engine/context.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { NS } from '../../engine/method.ts'
import { defineServerFeature, type Registration, type ServerKit } from '../../engine/server-feature.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Awaitable } from '../../jsonrpc/message.ts'
import { elicitYes } from '../mcp/elicitation/server.ts'
import { resourcesPort } from '../mcp/resources/messages.ts'
import { subscriptionsPort } from '../mcp/subscriptions/messages.ts'
import { type ToolFacts, toolsPort } from '../mcp/tools/messages.ts'
import { CallState, type CallStateStorage, statePort } from '../reliability/session-state/messages.ts'
import type { ChannelHandlers } from './channels/server.ts'
import type { Inference, InferenceInput } from './inference/server.ts'
import type { ModelInfo } from './model-info/messages.ts'
import type { createLiveRuntime } from './runtime.ts'
import type { FeatureSetOf, FeatureSetOptions } from './sets.ts'

/** Options of MCP Live. */
export interface LiveOptions {
  /** The most pending events. Default 10,000. */
  readonly outbox?: number
  /** How long an event is kept for a host. Default 7 days. */
  readonly keep?: Duration
  /**
   * How feature sets are declared: as an object by name, or as an array for hosts that expect the form of the first cores.
   * Default `auto`: as the host expects.
   */
  readonly featureSets?: 'object' | 'array' | 'auto'
}

/** The options of `createServer` that this feature reads. */
export interface LiveServerOptions {
  /** Settings for all feature sets. */
  readonly live?: LiveOptions
}

/** What the feature adds to the server; `F` is the author's type of a feature set. */
export interface LiveApi<F> {
  /**
   * Offers a feature set of MCP Live, which a host enables or disables as a whole. Plain clients just see its tools.
   * @example const memory = server.featureSet('memory.retrieval', { description: 'Finds memories' }); memory.beforeInference(turn => recall(turn))
   */
  featureSet(name: string, options: FeatureSetOptions): F
}

/** What the runtime is built from. */
export interface LiveParts extends ServerKit {
  readonly options: LiveOptions | undefined
  /** Adds a resource, for the list of pending events. */
  readonly resource: (
    uri: string,
    facts: { name: string; title: string; description: string; mimeType: string },
    handler: (variables: never, context: CallContext) => Awaitable<string>,
  ) => unknown
  /** Announces that the resource has changed. */
  readonly updated: (uri: string) => void
}

/** The server feature: `server.featureSet`. */
export const liveFeature = defineServerFeature<LiveServerOptions, LiveApi<FeatureSet>>({
  name: 'live',
  options: { live: 'object' },
  setup: (kit, { live: options }) => {
    if (options !== undefined)
      checkOptions('live', options, { outbox: 'number', keep: 'any', featureSets: 'string' } satisfies KindsOf<LiveOptions>)
    const { loading, featureSet, close } = serverLive({
      ...kit,
      options,
      resource: kit.port(resourcesPort).add,
      updated: kit.port(subscriptionsPort).updated,
    })
    return { server: { featureSet }, loading, stop: close }
  },
})

/**
 * Code that every server has loaded anyway. It is passed to the runtime, so that the bundler does not duplicate it or split it into a
 * chunk of its own.
 */
export interface LiveTools {
  context(context: CallContext, live: CallLive): LiveCallContext
  state(exchange: Exchange, runtime: () => Promise<CallStateStorage>): CallState
  /** Asks the user a yes/no question. */
  confirm(exchange: Exchange, message: string, key: string): Promise<boolean>
}

const tools: LiveTools = {
  context: (context, live) => new LiveCallContext(context, live),
  state: (exchange, runtime) => new CallState(exchange, true, runtime),
  confirm: (exchange, message, key) => elicitYes(exchange, { message, key }),
}

/** A feature set before the author's types are applied. */
type FeatureSet = FeatureSetOf<AddTool>
type AddTool = (name: string, options: ToolFacts, handler: AnyTool) => Registration<ToolFacts>

const kinds: KindsOf<FeatureSetOptions> = {
  description: 'string',
  uses: 'list',
  scoped: 'boolean',
  rollback: 'boolean',
  hostState: 'boolean',
}

type LiveRuntime = ReturnType<typeof createLiveRuntime>

// Queues the author's calls until the runtime is loaded.
function serverLive(parts: LiveParts) {
  const names = new Set<string>()
  /** The ids of all channels of the server. */
  const channels = new Set<string>()
  let runtime: LiveRuntime | undefined
  let loading: Promise<LiveRuntime> | undefined
  const load = (): Promise<LiveRuntime> => {
    loading ??= import('./runtime.ts').then(({ createLiveRuntime }) => {
      runtime = createLiveRuntime(parts, tools)
      return runtime
    })
    return loading
  }
  // Keeps the order of the author's calls, and completes before the server accepts messages.
  const later = (fn: (live: LiveRuntime) => void): void => {
    if (runtime !== undefined) fn(runtime)
    else void load().then(fn)
  }
  /** Wraps a handler so that it gets the context of its set. Generators stay generators, because tools detect them. */
  const bound = (set: string, handler: AnyTool) => {
    if (Object.prototype.toString.call(handler) === '[object AsyncGeneratorFunction]')
      return async function* (args: never, context: CallContext) {
        const live = runtime ?? (await load())
        return yield* handler(args, live.context(set, context)) as AsyncGenerator<unknown, unknown, void>
      }
    return (args: never, context: CallContext) =>
      runtime === undefined
        ? load().then(loaded => handler(args, loaded.context(set, context)))
        : handler(args, runtime.context(set, context))
  }
  // The author's handle of a set.
  const handleOf = (name: string): FeatureSet => {
    const told = (fn: (live: LiveRuntime) => void): FeatureSet => {
      later(fn)
      return handle
    }
    const onChannels = (handlers: ChannelHandlers): FeatureSet => told(({ sets }) => sets.onChannels(name, handlers))
    const handle: FeatureSet = {
      name,
      beforeInference: (hook, { positions } = {}) => told(({ sets }) => sets.before(name, hook, positions)),
      afterInference: (hook, { blocking = false } = {}) => told(({ sets }) => sets.after(name, hook, blocking)),
      onRollback: handler => told(({ sets }) => sets.onRollback(name, handler)),
      tool: (tool, options, handler) => {
        const meta = { ...options.meta, [`${NS}/live`]: { featureSet: name } }
        const registered = parts.port(toolsPort).add<ToolFacts>(tool, { ...options, meta }, bound(name, handler))
        later(live => live.tool(name, tool))
        return {
          ...registered,
          update: facts => registered.update(facts.meta === undefined ? facts : { ...facts, meta: { ...meta, ...facts.meta } }),
        }
      },
      channel: (id, options = {}) => {
        checkChannel(id, channels)
        channels.add(id)
        later(live => live.channel(name, id, options))
        return {
          id,
          incoming: async message => (await load()).incoming(name, id, message),
          remove: () => {
            channels.delete(id)
            later(live => live.removeChannel(id))
          },
        }
      },
      onPublish: publish => onChannels({ publish }),
      onStream: stream => onChannels({ stream }),
      onTyping: typing => onChannels({ typing }),
      onAcknowledge: acknowledge => onChannels({ acknowledge }),
      onOpen: open => onChannels({ open }),
      onClose: close => onChannels({ close }),
      push: async event => (await load()).push(name, event),
      infer: request => runtime?.infer(name, request) ?? lateInference(load(), name, request),
      scope: async (label, payload) => (await load()).scope(name, payload === undefined ? { label } : { label, payload }),
      modelInfo: async () => (await load()).modelInfo(name),
      remove: () => {
        names.delete(name)
        later(live => live.remove(name))
      },
    }
    return handle
  }
  return {
    /** Resolves when the runtime is loaded; undefined if there is nothing to wait for. */
    loading: (): Promise<unknown> | undefined => (runtime === undefined ? loading : undefined),
    featureSet: (name: string, options: FeatureSetOptions): FeatureSet => {
      checkSet(name, options, names)
      names.add(name)
      later(live => live.add(name, options))
      return handleOf(name)
    },
    close: async (): Promise<void> => (await loading)?.close(),
  }
}

// Throws for invalid names and options.
function checkSet(name: string, options: FeatureSetOptions, names: ReadonlySet<string>): void {
  if (typeof name !== 'string' || !/^[\w-]+(\.[\w-]+)*$/.test(name))
    throw new TypeError(
      `"${clip(String(name))}" is not a valid name of a feature set. Use words separated by dots, such as memory.retrieval`,
    )
  checkOptions(`featureSet "${name}"`, options, kinds)
  if (typeof options.description !== 'string' || options.description === '')
    throw new TypeError(`featureSet "${name}" needs a description. The user reads it to decide whether to enable the set`)
  if (names.has(name))
    throw new Error(`The feature set "${name}" already exists. Use another name, or remove the existing one first`)
}

/** Limits of a host: number of channels, and length of an id. */
const mostChannels = 10_000
const longestId = 512

function checkChannel(id: unknown, channels: ReadonlySet<string>): void {
  if (typeof id !== 'string' || id === '' || id.length > longestId)
    throw new TypeError(`A channel needs an id of 1 to ${longestId} characters, such as "discord:general"`)
  if (channels.has(id))
    throw new Error(`The channel "${clip(id)}" already exists. Use another id, or remove the existing one first`)
  if (channels.size >= mostChannels) throw new Error(`The server already has ${mostChannels} channels (the limit). Remove some`)
}

type AnyTool = (args: never, context: LiveCallContext) => Awaitable<unknown>

/** An inference that was requested before the runtime was loaded. */
function lateInference(loading: Promise<LiveRuntime>, name: string, request: InferenceInput): Inference {
  // Wrapped in an object, because an inference is thenable and would be awaited.
  const started = loading.then(live => ({ inference: live.infer(name, request) }))
  const result = started.then(({ inference }) => inference)
  return Object.assign(result, {
    async *[Symbol.asyncIterator]() {
      yield* (await started).inference
    },
  })
}

/** Checkpoints of a set whose state the server keeps. */
interface CallCheckpoint {
  /** The current checkpoint of the host; undefined before the first. */
  readonly current: string | undefined
  /** Reports a new checkpoint with the result of this call; returns its id. */
  save(id?: string): string
}

/** What `ctx` has in addition for tools of a feature set. */
export interface LiveMembers {
  /** Whether the caller speaks MCP Live; plain clients have no scopes, checkpoints or inference. */
  readonly live: boolean
  /** With `hostState`: the state that came with the call. It is returned with the result. */
  readonly state: CallState
  /** Checkpoints of a set whose state the server keeps. */
  readonly checkpoint: CallCheckpoint
  /**
   * Asks for permission to act on something: by the lists of the host, by the call, or by asking the user. Returns the payload;
   * throws if it is denied.
   * @example await ctx.scope(path, { path, mode: 'append' })
   */
  scope(label: string, payload?: Record<string, unknown>): Promise<Record<string, unknown> | undefined>
  /** Asks the model of the calling host. */
  infer(request: InferenceInput): Inference
  /** Which model the calling host runs. */
  modelInfo(): Promise<ModelInfo>
}

/** What `LiveCallContext` delegates to. */
interface CallLive extends Omit<LiveMembers, 'state'> {
  /** Undefined if the host does not keep the state. */
  readonly state: CallState | undefined
}

/** The `ctx` of a tool that belongs to a feature set. */
export class LiveCallContext extends CallContext implements LiveMembers {
  readonly #live: CallLive

  constructor(context: CallContext, live: CallLive) {
    super(exchangeOf(context))
    this.#live = live
  }

  get live(): boolean {
    return this.#live.live
  }

  get state(): CallState {
    const exchange = exchangeOf(this)
    return this.#live.state ?? exchange.engine.ports.get(statePort).of(exchange)
  }

  get checkpoint(): CallCheckpoint {
    return this.#live.checkpoint
  }

  scope(label: string, payload?: Record<string, unknown>): Promise<Record<string, unknown> | undefined> {
    if (typeof label !== 'string' || label === '')
      throw problem('INVALID_INPUT', 'A scope needs a non-empty label. The user reads it, and whitelist and blacklist match it')
    return ignoreUnhandledRejection(this.#live.scope(label, payload))
  }

  infer(request: InferenceInput): Inference {
    return this.#live.infer(request)
  }

  modelInfo(): Promise<ModelInfo> {
    return this.#live.modelInfo()
  }
}
