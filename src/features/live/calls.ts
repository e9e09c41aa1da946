/**
 * Two parts of a live server: the layers around calls of tools that belong to feature sets (refusal while the set is disabled, state,
 * checkpoints, scopes), and the outbox that opens when the first set pushes an event.
 */
import { toMilliseconds } from '../../core/clock.ts'
import type { Trace } from '../../core/log.ts'
import { type CallContext, exchangeOf } from '../../engine/context.ts'
import type { Exchange } from '../../engine/exchange.ts'
import type { Side } from '../../engine/plan.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { isInputRequired } from '../mcp/input-required/messages.ts'
import { callTool, listTools, type Tool } from '../mcp/tools/messages.ts'
import type { CallState, CallStateStorage } from '../reliability/session-state/messages.ts'
import { firstVersion } from '../reliability/session-state/versions.ts'
import { channelEventId } from './channels/messages.ts'
import type { ChannelMessage, ChannelSent } from './channels/server.ts'
import { type checkpointsServer, givenWith, reported } from './checkpoints/server.ts'
import { liveError } from './feature-sets/messages.ts'
import type { LiveCaller } from './hosts/messages.ts'
import type { Inference, InferenceInput } from './inference/server.ts'
import type { ModelInfo } from './model-info/messages.ts'
import { EventStore } from './push-events/event-store.ts'
import { Outbox } from './push-events/outbox.ts'
import { type OutgoingPush, outgoing, type Pushed, type PushInput } from './push-events/server.ts'
import type { scopesServer } from './scopes/server.ts'
import type { LiveCallContext, LiveParts, LiveTools } from './server.ts'
import type { Sets } from './sets.ts'

interface LiveCallsParts {
  /** The live host behind an exchange; undefined for a plain MCP client. */
  readonly caller: (exchange: Exchange) => LiveCaller | undefined
  readonly sets: Sets
  readonly scopes: ReturnType<typeof scopesServer>
  readonly checkpoints: ReturnType<typeof checkpointsServer>
  readonly infer: (set: string, request: InferenceInput, exchange: Exchange) => Inference
  readonly modelInfo: (set: string, exchange: Exchange) => Promise<ModelInfo>
  readonly trace: Trace
  readonly tools: LiveTools
}

/** Creates the layers and the handler context for tools that belong to feature sets. */
export function liveCalls(parts: LiveCallsParts) {
  // Tool name → set name.
  const setOf = new Map<string, string>()
  // Checkpoint ids that handlers saved by `ctx.checkpoint.save()`, reported with the result.
  const saved = new WeakMap<Exchange, string>()
  // Calls whose handler has asked for a scope.
  const asked = new WeakSet<Exchange>()
  const tool = ({ params }: Exchange): string => params['name'] as string
  const ofSet = (exchange: Exchange): boolean => setOf.has(tool(exchange))
  const side: Side = {
    layers: [
      {
        stage: 'decide',
        methods: [callTool.name],
        when: ofSet,
        run: (exchange, next) => {
          const featureSet = setOf.get(tool(exchange)) as string
          if (parts.caller(exchange)?.selected.disabled(featureSet) === true)
            throw liveError('feature-set-disabled', { featureSet })
          return next()
        },
      },
      {
        // Runs inside the replay stage, so a repeated call reports the same checkpoint.
        stage: 'execute',
        methods: [callTool.name],
        when: ofSet,
        run: async (exchange, next) => {
          const result = await next()
          if (!isRecord(result) || result['isError'] === true || isInputRequired(result)) return result
          const set = setOf.get(tool(exchange)) as string
          warn(parts, set, tool(exchange), asked.has(exchange))
          const checkpoint = parts.caller(exchange) && saved.get(exchange)
          if (checkpoint === undefined) return result
          return reported(result, set, { checkpoint, parent: givenWith(exchange).checkpoint ?? null })
        },
      },
      {
        stage: 'execute',
        methods: [listTools.name],
        when: exchange => setOf.size > 0 && parts.caller(exchange) !== undefined,
        run: async (_exchange, next) => withSets(await next(), setOf),
      },
    ],
  }
  return {
    /** Layers for `tools/call` and `tools/list`. */
    side,
    /** Records that a tool belongs to a set. */
    belongs: (name: string, set: string): void => void setOf.set(name, set),
    /** Builds the `ctx` of a tool of this set. */
    context: (set: string, context: CallContext): LiveCallContext => contextOf(parts, set, context, saved, asked),
  }
}

/** Adds `_meta.featureSet` to each listed tool, so that the host knows which set a tool belongs to. */
function withSets(listed: unknown, setOf: ReadonlyMap<string, string>): unknown {
  if (!isRecord(listed) || !Array.isArray(listed['tools'])) return listed
  const tools = (listed['tools'] as readonly Tool[]).map(tool => {
    const featureSet = setOf.get(tool.name)
    return featureSet === undefined ? tool : { ...tool, _meta: { ...tool._meta, featureSet } }
  })
  return { ...listed, tools }
}

/** Warns the author when a tool of a scoped set returns without having asked for a scope. */
function warn({ sets, trace }: LiveCallsParts, set: string, tool: string, asked: boolean): void {
  if (sets.get(set)?.facts.scoped !== true || asked) return
  trace('scope-not-asked', {
    tool,
    hint: `The feature set "${set}" is declared as scoped. Call ctx.scope(label, payload) before the tool acts`,
  })
}

/** Extends the context of a call with what MCP Live offers: state, checkpoints, scopes and inference. */
function contextOf(
  parts: LiveCallsParts,
  set: string,
  context: CallContext,
  saved: WeakMap<Exchange, string>,
  asked: WeakSet<Exchange>,
): LiveCallContext {
  const { sets, scopes, tools } = parts
  const exchange = exchangeOf(context)
  const caller = parts.caller(exchange)
  let state: CallState | undefined
  return tools.context(context, {
    live: caller !== undefined,
    get state() {
      // A plain client keeps no state, so the server's own session state applies instead.
      if (caller === undefined || sets.get(set)?.facts.hostState !== true) return undefined
      state ??= tools.state(exchange, () => workingState(parts.checkpoints, set))
      return state
    },
    checkpoint: {
      current: givenWith(exchange).checkpoint,
      save: (id = crypto.randomUUID()) => {
        saved.set(exchange, id)
        return id
      },
    },
    scope: async (label, payload) => {
      sets.scoped(set)
      asked.add(exchange)
      return scopes.within(exchange, caller, set, payload === undefined ? { label } : { label, payload })
    },
    infer: request => parts.infer(set, request, exchange),
    modelInfo: () => parts.modelInfo(set, exchange),
  })
}

/** Host-kept state: it arrives with the call and leaves with the result; the server stores nothing. */
async function workingState(checkpoints: LiveCallsParts['checkpoints'], set: string): Promise<CallStateStorage> {
  const { patched } = await import('../../core/state/patch.ts')
  return {
    patched,
    open: async exchange => ({ value: checkpoints.open(exchange, set), version: firstVersion(), storage: undefined }),
    close: async (exchange, _place, { value, steps, changed }, result) => {
      if (!changed || !isRecord(result)) return result
      return reported(result, set, await checkpoints.report(exchange, set, { value, steps }))
    },
  }
}

const pendingUri = 'live://events/pending'

/** How long a host may take to accept an event. */
const answerMs = 30_000
/** How many pending events the resource lists. */
const shown = 100

/** Opens the outbox of a server when its first set pushes or has a channel. */
export function liveOutbox(
  { options = {}, store, clock, trace, resource, updated }: LiveParts,
  { hosts, offered, isKnown }: Pick<ConstructorParameters<typeof Outbox>[0], 'hosts' | 'offered' | 'isKnown'>,
) {
  const { outbox: most = 10_000, keep = '7d' } = options
  const keepMs = toMilliseconds(keep, 'live.keep')
  let opening: Promise<Outbox> | undefined
  let offering = false
  // A failed attempt is forgotten, so the next call tries again.
  const open = (): Promise<Outbox> => {
    opening ??= (async () => {
      const eventStore = new EventStore({ store: await store(), clock, most })
      const changed = (): void => updated(pendingUri)
      const box = new Outbox({ eventStore, clock, trace, hosts, offered, isKnown, keepMs, timeoutMs: answerMs, changed })
      await box.open()
      return box
    })().catch(error => {
      opening = undefined
      throw error
    })
    return opening
  }
  // The resource lets clients without MCP Live read the pending events.
  const offer = (): void => {
    if (offering) return
    offering = true
    const facts = {
      name: 'pending-events',
      title: 'Pending events',
      description: 'Events that no host has accepted yet, oldest first',
      mimeType: 'application/json',
    }
    resource(pendingUri, facts, async (_, { principal }) => {
      // Events addressed to one principal are hidden from all others.
      const mine = (await open()).pending.filter(({ to }) => to === undefined || to === principal?.id)
      return JSON.stringify({ events: mine.slice(0, shown).map(told), more: Math.max(0, mine.length - shown) })
    })
  }
  return {
    /** Opens the store and resumes the delivery of events that are still pending. */
    open: (): void => {
      offer()
      void open().catch(error => trace('outbox-not-opened', error))
    },
    /** Queues an event for the hosts that have this set enabled. */
    push: async (featureSet: string, event: PushInput): Promise<Pushed> =>
      (await open()).push(outgoing(featureSet, event, clock.now())),
    /** Queues a message that somebody wrote in a channel. */
    incoming: async (featureSet: string, channelId: string, message: ChannelMessage): Promise<ChannelSent> => {
      const { content, messageId = crypto.randomUUID(), threadId, author, ...rest } = message
      if (typeof messageId !== 'string' || messageId === '') throw new TypeError('incoming: messageId must be a non-empty string')
      const channel = { channelId, messageId, ...(threadId !== undefined && { threadId }), ...(author && { author }) }
      const event = { ...rest, content, channel, eventId: channelEventId(channelId, messageId) }
      const { timestamp, answered } = await (await open()).push(outgoing(featureSet, event, clock.now()))
      const verdict = answered.then(answer =>
        answer.accepted ? { messageId, accepted: true } : { messageId, accepted: false, reason: answer.reason },
      )
      // Authors rarely await this promise; without a handler a rejection would be reported as unhandled.
      verdict.catch(() => undefined)
      return { messageId, timestamp, answered: verdict }
    },
    /** Retries delivery now, for example because a host has connected. */
    retryNow: (): void => void opening?.then(box => box.retryNow()).catch(() => undefined),
    /** A host has left: no event waits for it any longer. */
    left: (): void => void opening?.then(box => box.left()).catch(() => undefined),
    /** Stops delivery; pending events stay in the store. */
    close: async (): Promise<void> => {
      const box = await opening?.catch(() => undefined)
      await box?.close()
    },
  }
}

/** The event without its addressee, as the resource shows it. */
function told({ to, ...event }: OutgoingPush): Omit<OutgoingPush, 'to'> {
  return event
}
