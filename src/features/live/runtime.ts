/** Composes the live features of a server, and prevents inference inside of hooks. Loaded with the first feature set. */

import type { Clock } from '../../core/clock.ts'
import { type Problem, problem } from '../../core/problem.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { statelessRevisionIds } from '../../engine/method.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { takesElicitation } from '../mcp/elicitation/messages.ts'
import { liveCalls, liveOutbox } from './calls.ts'
import { type ChannelMessage, type ChannelOptions, type ChannelSent, channelsServer } from './channels/server.ts'
import { checkpointsServer } from './checkpoints/server.ts'
import { hooksServer } from './context-hooks/server.ts'
import { liveExtension, notEnabled } from './feature-sets/messages.ts'
import { featureSetsServer, SelectedSets, selectionIn } from './feature-sets/server.ts'
import type { LiveCaller, LiveHost } from './hosts/messages.ts'
import { createHosts } from './hosts/server.ts'
import { type Inference, type InferenceInput, inferenceServer } from './inference/server.ts'
import { listenServer } from './listen/server.ts'
import type { ModelInfo } from './model-info/messages.ts'
import type { Pushed, PushInput } from './push-events/server.ts'
import type { Scope } from './scopes/messages.ts'
import { scopesServer } from './scopes/server.ts'
import type { LiveParts, LiveTools } from './server.ts'
import { type FeatureSetOptions, Sets } from './sets.ts'

/** How long a host whose stream broke is kept, and the timeout of an inference. */
const lingerMs = 60_000
const inferMs = 600_000

/** Creates MCP Live of one server. */
export function createLiveRuntime(parts: LiveParts, tools: LiveTools) {
  const { clock, trace, engine, askMs } = parts
  const watch = hookWatch(clock)
  const hosts = createHosts({
    engine,
    form: parts.options?.featureSets,
    selected: declared => featureSets.selectedWith(declared),
    left: () => outbox.left(),
    listening: () => listen.hosts(),
  })
  const listen = listenServer({
    clock,
    lingerMs,
    limits: () => engine().limits,
    heard: () => awake(),
    left: () => outbox.left(),
    registration: ({ peer }, said) => {
      const selection = new SelectedSets()
      return {
        dialect: hosts.listeningDialect(peer, said),
        selected: selection,
        select: policy => {
          featureSets.select(selection, policy)
          awake()
        },
      }
    },
  })
  // Finds the host behind a request: by session, by its listen stream, or by the policy in `_meta`.
  const caller = (exchange: Exchange): LiveCaller | undefined => {
    const { peer, conversation, meta } = exchange
    if (peer.revision.era === 'session') {
      const registration = hosts.registration(conversation)
      return registration && { dialect: registration.host.dialect, selected: registration.selection, host: registration.host }
    }
    const dialect = hosts.dialectOf(peer)
    if (dialect === undefined) return undefined
    const live = meta?.[liveExtension]
    const policy = selectionIn(isRecord(live) ? live['policy'] : undefined)
    const registration = listen.find(exchange)
    if (registration !== undefined) {
      if (policy !== undefined) registration.select(policy)
      return { dialect: registration.host.dialect, selected: registration.host.selected, host: registration.host }
    }
    const selected = new SelectedSets()
    if (policy !== undefined) featureSets.select(selected, policy)
    return { dialect, selected, host: undefined }
  }
  const featureSets = featureSetsServer({
    clock,
    hosts: hosts.all,
    dialectOf: hosts.dialectOf,
    stored: exchange => {
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
  const sets = new Sets(featureSets.catalog)
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
    opening: () => sets.all().flatMap(({ name, handlers }) => (handlers.open === undefined ? [] : [name])),
    known: outbox.retryNow,
  })
  /** Hosts have connected or selected: deliver what is pending. */
  function awake(): void {
    outbox.retryNow()
    channels.sync()
  }
  const scopes = scopesServer({
    askMs,
    ask: (exchange, message, key) =>
      takesElicitation(exchange.peer, 'form') ? tools.confirm(exchange, message, key) : undefined,
  })
  const checkpoints = checkpointsServer({ set: name => sets.get(name), caller, store: parts.store, trace })
  const inference = inferenceServer({
    clock,
    timeoutMs: inferMs,
    chunked: ({ conversation }, id, index, delta) => hosts.registration(conversation)?.host.chunk(id, index, delta),
  })
  const hooks = hooksServer({
    sets: () => sets.all(),
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
  const infer = (name: string, request: InferenceInput, exchange?: Exchange): Inference => {
    const host = async (): Promise<LiveHost> => {
      sets.needs(name, 'inferenceRequest')
      const found = hostOf(name, exchange)
      await watch.free(found)
      if (!found.selected.enabled(name)) throw notEnabled(name)
      return found
    }
    return inference.infer(name, request, host, exchange)
  }
  const modelInfo = async (name: string, exchange?: Exchange): Promise<ModelInfo> =>
    inference.modelInfo(hostOf(name, exchange), exchange)
  const calls = liveCalls({ caller, sets, scopes, checkpoints, infer, modelInfo, trace, tools })
  for (const side of [featureSets.side, hooks, checkpoints.side, channels.side, inference.side, listen.side, calls.side])
    parts.add(side)
  parts.add({
    memories: [hosts.memory],
    // On stateless wires each request may carry a new selection.
    layers: [
      {
        stage: 'enter',
        in: statelessRevisionIds,
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
  return {
    /** What authors say of their sets. */
    sets,
    infer,
    modelInfo,
    /** Builds the `ctx` of a tool of a set. */
    context: calls.context,
    /** Offers a set. */
    add: (name: string, options: FeatureSetOptions): void => {
      sets.add(name, options)
      if (options.uses?.includes('pushEvents') === true) outbox.open()
    },
    remove: (name: string): void => {
      sets.remove(name)
      channels.drop(name)
    },
    /** Records that a tool belongs to a set. */
    tool: (name: string, tool: string): void => {
      sets.tool(name)
      calls.belongs(tool, name)
    },
    /** Offers a channel. */
    channel: (name: string, id: string, options: ChannelOptions): void => {
      channels.add(name, id, options)
      sets.channels(name)
      outbox.open()
    },
    removeChannel: channels.remove,
    incoming: async (name: string, id: string, message: ChannelMessage): Promise<ChannelSent> => {
      sets.needs(name, 'channels.incoming')
      if (!channels.has(name, id)) throw new Error(`The channel "${clip(id)}" was removed. Create it again`)
      return outbox.incoming(name, id, message)
    },
    push: async (name: string, event: PushInput): Promise<Pushed> => {
      sets.needs(name, 'pushEvents')
      return outbox.push(name, event)
    },
    /** Asks for a scope outside of calls. */
    scope: async (name: string, scope: Scope): Promise<Record<string, unknown> | undefined> => {
      sets.scoped(name)
      return scopes.elevate(hostOf(name), name, scope)
    },
    close: async (): Promise<void> => {
      listen.close()
      await outbox.close()
    },
  }
}

function nobody(): Problem {
  return problem('HOST_MISSING', 'No host that supports MCP Live is connected', {
    suggestion: 'Connect a host that declares experimental.mcpl or the extension dev.vivarium/live',
    actor: 'operator',
  })
}

// Tracks running hooks: an inference must not start while a hook of the same host runs (MCP Live 0.2 §10.7), so it waits.

/** A hook that is still running after this time, and requested an inference, is assumed to wait for it. */
const waitMs = 2_000

interface Running {
  active: boolean
}

type Local = { run<T>(store: Running, fn: () => T): T; getStore(): Running | undefined }

function hookWatch(clock: Clock) {
  const local = follower()
  const working = new Map<object, { count: number; readonly waiting: Set<() => void> }>()
  return {
    /** Runs a hook of host `of`. */
    during: async <T>(of: object, run: () => Promise<T>): Promise<T> => {
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
    /**
     * Resolves when no hook of the host runs; rejects if the caller is itself a hook that waits for the inference, which would be a
     * deadlock.
     */
    free: async (of: object): Promise<void> => {
      const inside = local?.getStore()
      for (let at = working.get(of); at !== undefined; at = working.get(of)) {
        const { waiting } = at
        await new Promise<void>((resolve, reject) => {
          const late = (): void => {
            if (inside?.active === true) reject(onTheWay())
          }
          const stop = inside === undefined ? undefined : clock.setTimeout(late, waitMs, true)
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
  return problem('INFERENCE_IN_HOOK', 'A hook awaits an inference, which cannot run before the hook has answered', {
    suggestion: 'Start the inference without awaiting it, and use its result in a later turn',
    actor: 'operator',
  })
}
