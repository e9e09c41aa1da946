/** Composes the live features of a server, and prevents inference inside of hooks. Loaded with the first feature set. */

import type { Clock } from '../../core/clock.ts'
import { type Problem, problem } from '../../core/problem.ts'
import type { CallContext } from '../../engine/context.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { requestIds } from '../../engine/method.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Capabilities } from '../../revisions/index.ts'
import { takesElicitation } from '../mcp/elicitation/messages.ts'
import { liveCalls, liveOutbox } from './calls.ts'
import type { ChannelHandlers, ChannelMessage, ChannelOptions, ChannelSent } from './channels/server.ts'
import { channelsServer } from './channels/server.ts'
import { checkpointIds, checkpointsServer, type RollbackHandler } from './checkpoints/server.ts'
import type { Position } from './context-hooks/messages.ts'
import { type AfterHook, type BeforeHook, hooksServer } from './context-hooks/server.ts'
import { liveExtension, notEnabled } from './feature-sets/messages.ts'
import { featureSetsServer, SelectedSets, select, selectedWith, selectionIn } from './feature-sets/server.ts'
import type { LiveCaller, LiveHost } from './hosts/messages.ts'
import { createHosts, hostDialectOf, liveIn } from './hosts/server.ts'
import { askModel, type Inference, type InferenceInput, inferenceServer } from './inference/server.ts'
import { listenServer } from './listen/server.ts'
import type { ModelInfo } from './model-info/messages.ts'
import type { Pushed, PushInput } from './push-events/server.ts'
import type { Scope } from './scopes/messages.ts'
import { scopesServer } from './scopes/server.ts'
import type { LiveCallContext, LiveParts, LiveTools } from './server.ts'
import { createSets, type FeatureSetOptions } from './sets.ts'

/** MCP Live of one server; the methods correspond to those of `FeatureSetOf`. */
export interface LiveRuntime {
  /** Offers a set. */
  add(name: string, options: FeatureSetOptions): void
  before(name: string, hook: BeforeHook, positions: readonly Position[] | undefined): void
  after(name: string, hook: AfterHook, blocking: boolean): void
  onRollback(name: string, handler: RollbackHandler): void
  /** Records that a tool belongs to a set. */
  tool(name: string, tool: string): void
  /** Offers a channel. */
  channel(name: string, id: string, options: ChannelOptions): void
  removeChannel(id: string): void
  incoming(name: string, id: string, message: ChannelMessage): Promise<ChannelSent>
  onChannels(name: string, handlers: ChannelHandlers): void
  remove(name: string): void
  push(name: string, event: PushInput): Promise<Pushed>
  infer(name: string, request: InferenceInput, exchange?: Exchange): Inference
  /** Asks for a scope outside of calls. */
  scope(name: string, scope: Scope): Promise<Record<string, unknown> | undefined>
  modelInfo(name: string, exchange?: Exchange): Promise<ModelInfo>
  /** Builds the `ctx` of a tool of this set. */
  context(set: string, context: CallContext): LiveCallContext
  close(): Promise<void>
}

/** How long a host whose stream broke is kept, and the timeout of an inference. */
const lingerMs = 60_000
const inferMs = 600_000

/** Creates the live runtime of one server. */
export function createLiveRuntime(parts: LiveParts, tools: LiveTools): LiveRuntime {
  const { clock, trace, engine, askMs } = parts
  const form = parts.options?.featureSets
  const watch = hookWatch(clock)
  const selected = (declared: Capabilities): SelectedSets => selectedWith(declared, featureSets.names())
  const hosts = createHosts({ engine, form, selected, listening: () => listen.hosts() })
  const listen = listenServer({
    clock,
    lingerMs,
    limits: () => engine().limits,
    heard: () => awake(),
    seat: ({ peer }, said) => {
      const selection = new SelectedSets()
      return {
        dialect: hostDialectOf({ ...liveIn(peer), ...said }, peer.info, form),
        selected: selection,
        select: policy => {
          select(selection, policy, featureSets.catalog.snapshot.entries, 'whole')
          awake()
        },
      }
    },
  })
  // Finds the host behind a request: by session, by its listen stream, or by the policy in `_meta`.
  const caller = (exchange: Exchange): LiveCaller | undefined => {
    const { peer, conversation, meta } = exchange
    if (peer.revision.era === 'session') {
      const seat = hosts.seat(conversation)
      return seat && { dialect: seat.host.dialect, selected: seat.selection, host: seat.host }
    }
    const said = liveIn(peer)
    if (said === undefined) return undefined
    const live = meta?.[liveExtension]
    const policy = selectionIn(isRecord(live) ? live['policy'] : undefined)
    const seat = listen.find(exchange)
    if (seat !== undefined) {
      if (policy !== undefined) seat.select(policy)
      return { dialect: seat.host.dialect, selected: seat.host.selected, host: seat.host }
    }
    const selected = new SelectedSets()
    if (policy !== undefined) select(selected, policy, featureSets.catalog.snapshot.entries, 'whole')
    return { dialect: hostDialectOf(said, peer.info, form), selected, host: undefined }
  }
  const featureSets = featureSetsServer({
    clock,
    hosts: hosts.all,
    dialectOf: hosts.dialectOf,
    kept: exchange => {
      const found = caller(exchange)
      return found?.selected instanceof SelectedSets ? { dialect: found.dialect, selection: found.selected } : undefined
    },
    selected: exchange => {
      hosts.keep(exchange)
      awake()
    },
    gone: names => {
      for (const { selected } of hosts.all())
        if (selected instanceof SelectedSets) for (const name of names) selected.forget(name)
    },
  })
  const sets = createSets(featureSets.catalog)
  const outbox = liveOutbox(parts, {
    hosts: hosts.all,
    offered: name => sets.get(name) !== undefined,
    isKnown: (host, channel) => channels.isKnown(host, channel),
  })
  const channels = channelsServer({
    clock,
    trace,
    hosts: hosts.all,
    caller,
    handlers: name => sets.get(name)?.handlers ?? {},
    opening: sets.opening,
    known: outbox.kick,
  })
  /** Hosts have connected or selected: deliver what is pending. */
  function awake(): void {
    outbox.kick()
    channels.sync()
  }
  const scopes = scopesServer({
    askMs,
    ask: (exchange, message, key) =>
      takesElicitation(exchange.peer, 'form') ? tools.confirm(exchange, message, key) : undefined,
  })
  const ids = checkpointIds(parts.store)
  const checkpoints = checkpointsServer({ set: sets.get, caller, ids, trace })
  const inference = inferenceServer({
    clock,
    timeoutMs: inferMs,
    chunked: ({ conversation }, id, index, delta) => hosts.seat(conversation)?.host.chunk(id, index, delta),
  })
  const hooks = hooksServer({
    sets: sets.hooked,
    caller,
    during: async (exchange, run) => watch.during(caller(exchange)?.host ?? exchange.conversation, run),
    trace,
  })
  /** The calling host; outside of calls the most recent host with the set enabled. */
  const hostOf = (name: string, exchange?: Exchange): LiveHost => {
    const host = exchange === undefined ? undefined : caller(exchange)?.host
    if (host?.selected.enabled(name) === true) return host
    const all = [...hosts.all()].filter(({ reachable }) => reachable)
    const found = exchange === undefined ? all.findLast(({ selected }) => selected.enabled(name)) : undefined
    if (found !== undefined) return found
    throw all.length === 0 ? nobody() : notEnabled(name)
  }
  const runtime: LiveRuntime = {
    add: (name, options) => {
      sets.add(name, options)
      if (options.uses?.includes('pushEvents') === true) outbox.open()
    },
    before: sets.before,
    after: sets.after,
    onRollback: sets.onRollback,
    tool: (name, tool) => {
      sets.tool(name)
      calls.belongs(tool, name)
    },
    channel: (name, id, options) => {
      channels.add(name, id, options)
      sets.channels(name)
      outbox.open()
    },
    removeChannel: channels.remove,
    incoming: async (name, id, message) => {
      sets.needs(name, 'channels.incoming')
      if (!channels.has(name, id)) throw new Error(`The channel "${clip(id)}" was removed: make it again`)
      return outbox.incoming(name, id, message)
    },
    onChannels: sets.onChannels,
    remove: name => {
      sets.remove(name)
      channels.drop(name)
    },
    push: async (name, event) => {
      sets.needs(name, 'pushEvents')
      return outbox.push(name, event)
    },
    infer: (name, request, exchange) =>
      inference.infer(
        name,
        request,
        async () => {
          sets.needs(name, 'inferenceRequest')
          const host = hostOf(name, exchange)
          await watch.free(host)
          if (!host.selected.enabled(name)) throw notEnabled(name)
          return host
        },
        exchange,
      ),
    scope: async (name, scope) => {
      sets.scoped(name)
      return scopes.elevate(hostOf(name), name, scope)
    },
    modelInfo: async (name, exchange) => askModel(hostOf(name, exchange), exchange),
    context: (set, context) => calls.context(set, context),
    close: async () => {
      listen.close()
      await outbox.close()
    },
  }
  const calls = liveCalls({ caller, sets, scopes, checkpoints, runtime, trace, tools })
  for (const side of [featureSets.side, hooks, checkpoints.side, channels.side, inference.side, listen.side, calls.side])
    parts.add(side)
  parts.add({
    memories: [hosts.memory],
    // On stateless wires each request may carry a new selection.
    layers: [
      {
        stage: 'enter',
        in: requestIds,
        when: ({ meta }) => meta?.[liveExtension] !== undefined,
        run: (exchange, next) => {
          caller(exchange)
          return next()
        },
      },
    ],
  })
  engine().onReady.add(awake)
  engine().onListen.add(awake)
  return runtime
}

function nobody(): Problem {
  return problem('HOST_MISSING', 'No host that speaks MCP Live is connected', {
    suggestion: 'Connect one that declares experimental.mcpl, or the extension dev.vivarium/live',
    actor: 'operator',
  })
}

// Tracks running hooks: an inference must not start while a hook of the same host runs (MCP Live 0.2 §10.7), so it waits.

interface HookWatch {
  /** Runs a hook of host `of`. */
  during<T>(of: object, run: () => Promise<T>): Promise<T>
  /**
   * Resolves when no hook of the host runs; rejects if the caller is itself a hook that waits for the inference, which would be a
   * deadlock.
   */
  free(of: object): Promise<void>
}

/** A hook that is still running after this time, and requested an inference, is assumed to wait for it. */
const patienceMs = 2_000

interface Running {
  active: boolean
}

type Local = { run<T>(store: Running, fn: () => T): T; getStore(): Running | undefined }

function hookWatch(clock: Clock): HookWatch {
  const local = follower()
  const working = new Map<object, { count: number; readonly waiting: Set<() => void> }>()
  return {
    during: async (of, run) => {
      const at = working.get(of) ?? { count: 0, waiting: new Set() }
      working.set(of, at)
      at.count++
      const running = { active: true }
      try {
        return await (local === undefined ? run() : local.run(running, run))
      } finally {
        running.active = false
        if (--at.count === 0) {
          working.delete(of)
          // Deferred, so that the answer of the hook is sent first.
          clock.setTimeout(() => {
            for (const fn of at.waiting) fn()
          }, 0)
        }
      }
    },
    free: async of => {
      const inside = local?.getStore()
      for (let at = working.get(of); at !== undefined; at = working.get(of)) {
        const { waiting } = at
        await new Promise<void>((resolve, reject) => {
          const late = (): void => {
            if (inside?.active === true) reject(onTheWay())
          }
          const stop = inside === undefined ? undefined : clock.setTimeout(late, patienceMs, true)
          waiting.add(() => {
            stop?.()
            resolve()
          })
        })
      }
    },
  }
}

/** AsyncLocalStorage, on runtimes that have it. */
function follower(): Local | undefined {
  const hooks = globalThis.process?.getBuiltinModule?.('node:async_hooks')
  return hooks === undefined ? undefined : new hooks.AsyncLocalStorage<Running>()
}

function onTheWay(): Problem {
  return problem('INFERENCE_IN_HOOK', 'A hook waits for an inference, which must not run before the hook has answered', {
    suggestion: 'Start it without awaiting it, and use what comes of it in a later turn',
    actor: 'operator',
  })
}
