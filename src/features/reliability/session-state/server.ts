/**
 * Server side of session state: `ctx.state`, the option `state` of tools, and `server.states`. Decides where a caller's state is kept;
 * the runtime is loaded on first access.
 */

import { type Duration, toMilliseconds } from '../../../core/clock.ts'
import type { Occurrence } from '../../../core/feed/feed.ts'
import type { Seal } from '../../../core/handle.ts'
import { type CallContext, exchangeOf } from '../../../engine/context.ts'
import { type Exchange, field } from '../../../engine/exchange.ts'
import { declaredSettings, extensionCapability } from '../../../engine/extensions.ts'
import { defineServerFeature, lazily, provide, type ServerKit } from '../../../engine/server-feature.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Store } from '../../../stores/store.ts'
import { askingMethods } from '../../mcp/input-required/messages.ts'
import { callTool, type ToolFacts, toolsPort } from '../../mcp/tools/messages.ts'
import { eventsPort } from '../events/messages.ts'
import { transactionsPort } from '../transactions/messages.ts'
import { CallState, type Lifecycle, stateExtension, stateIn, statePort } from './messages.ts'

export type { CallState } from './messages.ts'

/** The options of `createServer` that this feature reads. */
export interface StateServerOptions {
  /** How long `ctx.state` lasts. */
  readonly state?: StateOptions
}

/** What the feature adds to the server. */
export interface StatesApi {
  /** The sessions of `ctx.state`. */
  readonly states: States
}

/** What the feature adds to `ctx`. */
export interface StateContext {
  /**
   * State that persists between calls of a conversation, on any replica. It is stored when the handler has succeeded.
   * @example
   * const visits = ((await ctx.state.get<number>()) ?? 0) + 1
   * await ctx.state.set(visits)
   */
  readonly state: CallState
}

/** The server feature: `ctx.state`, `state` and `server.states`. */
export const stateFeature = defineServerFeature<StateServerOptions, StatesApi>({
  name: 'session-state',
  options: { state: 'object' },
  context: {
    get state() {
      const exchange = exchangeOf(this)
      return exchange.engine.ports.get(statePort).of(exchange)
    },
  } satisfies StateContext & ThisType<CallContext>,
  setup: (kit, { state = {} }) => {
    const ttlMs = toMilliseconds(state.ttl ?? '24h', 'state.ttl')
    const tools = kit.port(toolsPort)
    const runtime = lazily(async () => {
      const [{ StateRuntime }, store] = await Promise.all([import('./runtime.ts'), kit.store()])
      return new StateRuntime({ ...kit, ttlMs, store, keeping: exchange => keepingOf(exchange, kit.shared) })
    })
    let warned = false
    let hinted = false
    const of = (exchange: Exchange): CallState => {
      const before = exchange.get(callState)
      if (before !== undefined) return before
      const durable = isDurable(exchange, kit.seal)
      if (!durable && !warned) {
        warned = true
        kit.trace('state-not-durable', hint)
      }
      const made = new CallState(exchange, durable, runtime.open)
      exchange.set(callState, made)
      return made
    }
    tools.extend<ToolFacts>({
      declare: (_, { state: rule }) => {
        if (rule === undefined) return
        if (rule !== 'branch' && rule !== 'conflict')
          throw new TypeError(
            `state is "${clip(rule)}". It must be 'branch' or 'conflict': the result when two calls write the same state`,
          )
        if (kit.seal.durable || hinted) return
        hinted = true
        kit.trace('state-needs-secret', needsSecret)
      },
    })
    kit.port(transactionsPort).revertBy(async wrote => (await runtime.open()).revert(wrote))
    return {
      sides: [
        {
          layers: [
            {
              // Tools that declare `state` fail early if the token is invalid.
              stage: 'unseal',
              methods: [callTool.name],
              marked: true,
              when: ({ meta, params }) =>
                stateIn(meta) !== undefined && tools.facts(params['name'] as string)?.state !== undefined,
              run: async (exchange, next) => {
                await of(exchange).open()
                return next()
              },
            },
          ],
          // Clients are told only if some tool declares `state`.
          capabilities: revision =>
            tools.some('state tools', ({ facts }) => facts.state !== undefined)
              ? extensionCapability(revision, stateExtension)
              : {},
        },
      ],
      provides: provide(statePort, { of }),
      server: {
        states: {
          follow: async function* ({ after, signal }) {
            yield* (await runtime.open()).follow(after, signal)
          },
          rollback: async (session, version) => (await runtime.open()).rollback(session, version),
        },
      },
      installed: () => {
        if (state.events !== true) return
        for (const [name, description] of Object.entries(sessionEvents))
          kit.port(eventsPort).add(name, { description, payload: sessionPayload })
      },
    }
  },
})

/** The state of a call, once it was touched. */
const callState = field<CallState>()

const text = { type: 'string' } as const

const sessionPayload = {
  type: 'object',
  properties: { type: text, session_id: text, timestamp: text, reason: text },
  required: ['type', 'session_id', 'timestamp'],
} as const

const sessionEvents: Readonly<Record<Lifecycle, string>> = {
  session_created: 'One of your state sessions was created',
  session_renewed: 'One of your state sessions was extended',
  session_expired: 'One of your state sessions expired because it was not used',
  session_invalidated: 'One of your state sessions was ended or rolled back. Its tokens are no longer valid',
}

/** What an operator can do with states. */
interface States {
  /** Lifecycle events, from a cursor or from the oldest. */
  follow(options: {
    /** Starts after the event with this cursor. Default: the oldest event. */
    readonly after?: number
    /** Ends the iteration. */
    readonly signal: AbortSignal
  }): AsyncGenerator<Occurrence, void>
  /** Invalidates everything written in a session after that version. */
  rollback(session: string, version: number): Promise<void>
}

const hint = {
  hint: 'ctx.state of this caller is lost after each call: the client returns no session_state, has no session and is not signed in. Set auth in listen, or use a client with the extension dev.vivarium/state',
}

const needsSecret = {
  hint: 'The option secret is not set. States that clients carry become invalid when this process ends, and other processes cannot read them',
}

/** Where a caller's state is kept. `shared`: whether the store outlives this process, or other processes share it. */
function keepingOf(
  { peer, conversation, caller, meta, route }: Exchange,
  shared: boolean,
): 'token' | 'conversation' | 'session' | 'principal' | 'call' {
  if (stateIn(meta) !== undefined || declaredSettings(peer, stateExtension) !== undefined) {
    // Results of other methods cannot carry a token.
    if ((askingMethods as readonly string[]).includes(route.method.name)) return 'token'
  }
  if (conversation.connection !== undefined) return 'conversation'
  if (conversation.session !== undefined) return shared ? 'session' : 'conversation'
  return caller.principal === undefined ? 'call' : 'principal'
}

// Whether the next call will find the state.
function isDurable(exchange: Exchange, seal: Seal): boolean {
  const keeping = keepingOf(exchange, true)
  return keeping === 'token' ? seal.durable || exchange.caller.ephemeral !== true : keeping !== 'call'
}

/** Options of session state. */
interface StateOptions {
  /** Lifetime without use. Default 24 hours. */
  readonly ttl?: Duration
  /**
   * Clients can subscribe to what happens to their states: `session_created`, `session_renewed`, `session_expired` and
   * `session_invalidated`. Default false.
   */
  readonly events?: boolean
}

/** What the runtime needs from the server. */
export interface StateParts extends Pick<ServerKit, 'name' | 'seal' | 'clock' | 'port' | 'trace'> {
  readonly ttlMs: number
  readonly store: Store
  /** Where the state of a call is kept. */
  readonly keeping: (exchange: Exchange) => ReturnType<typeof keepingOf>
}
