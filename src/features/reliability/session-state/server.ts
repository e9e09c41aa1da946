/**
 * Server side of session state: `ctx.state`, the option `state` of tools, and `server.states`. Decides where a caller's state is kept;
 * the runtime is loaded on first access.
 */

import { type Clock, type Duration, toMilliseconds } from '../../../core/clock.ts'
import type { Occurrence } from '../../../core/feed/feed.ts'
import type { Seal } from '../../../core/handle.ts'
import type { UndoneParts } from '../../../core/journal/rollback.ts'
import type { Trace } from '../../../core/log.ts'
import { type CallContext, exchangeOf } from '../../../engine/context.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature, provide } from '../../../engine/server-feature.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import type { Op, Store } from '../../../stores/store.ts'
import { askingMethods } from '../../mcp/input-required/messages.ts'
import { callTool, type ToolFacts, toolsPort } from '../../mcp/tools/messages.ts'
import { eventsPort } from '../events/messages.ts'
import { transactionsPort } from '../transactions/messages.ts'
import { CallState, type Lifecycle, stateExtension, stateIn, statePort } from './messages.ts'
import type { StateRuntime } from './runtime.ts'

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
  /** State that persists between calls of a conversation, on any replica. Stored after success. */
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
    const tools = kit.port(toolsPort)
    const { side, states, declare, revert, of } = stateServer({
      ...kit,
      ...state,
      audience: kit.name,
      announcing: (name, payload, owner) => kit.port(eventsPort).announcing(name, payload, owner),
      rule: tool => tools.facts(tool)?.state,
      used: () => tools.some('state tools', ({ facts }) => facts.state !== undefined),
    })
    tools.extend<ToolFacts>({ declare: (_, facts) => declare(facts.state) })
    kit.port(transactionsPort).revertBy(revert)
    return {
      sides: [side],
      provides: provide(statePort, { of }),
      server: { states },
      installed: () => {
        if (state.events !== true) return
        for (const [name, description] of Object.entries(sessionEvents))
          kit.port(eventsPort).add(name, { description, payload: sessionPayload })
      },
    }
  },
})

const text = { type: 'string' } as const

const sessionPayload = {
  type: 'object',
  properties: { type: text, session_id: text, timestamp: text, reason: text },
  required: ['type', 'session_id', 'timestamp'],
} as const

const sessionEvents: Readonly<Record<Lifecycle, string>> = {
  session_created: 'A session of state of yours began',
  session_renewed: 'A session of state of yours lasts longer now',
  session_expired: 'A session of state of yours is over, since nobody used it',
  session_invalidated: 'A session of state of yours was ended or rolled back: its tokens are good for nothing any more',
}

/** What an operator can do with states. */
interface States {
  /** Lifecycle events, from a cursor or from the oldest. */
  follow(options: { readonly after?: number; readonly signal: AbortSignal }): AsyncGenerator<Occurrence, void>
  /** Invalidates everything written in a session after that version. */
  rollback(session: string, version: number): Promise<void>
}

interface StateServer {
  readonly side: Side
  readonly states: States
  /** Checks the option of a tool, and warns if a secret is missing. */
  declare(rule: string | undefined): void
  /** Reverts what a step wrote. */
  revert(wrote: unknown): Promise<UndoneParts>
  /** The state of a call. */
  of(exchange: Exchange): CallState
}

function stateServer(parts: StateParts): StateServer {
  const ttlMs = toMilliseconds(parts.ttl ?? '24h', 'state.ttl')
  const touched = new WeakMap<Exchange, CallState>()
  let warned = false
  let hinted = false
  const keeping = (exchange: Exchange): Keeping => keepingOf(exchange, parts.shared)
  let loading: Promise<StateRuntime> | undefined
  const load = (): Promise<StateRuntime> => {
    loading ??= Promise.all([import('./runtime.ts'), parts.store()])
      .then(([{ createStateRuntime }, store]) => createStateRuntime({ ...parts, ttlMs, opened: store, keeping }))
      .catch(error => {
        loading = undefined
        throw error
      })
    return loading
  }
  const of = (exchange: Exchange): CallState => {
    let state = touched.get(exchange)
    if (state === undefined) {
      const durable = isDurable(exchange, parts.seal)
      if (!durable && !warned) {
        warned = true
        parts.trace('state-not-durable', hint)
      }
      state = new CallState(exchange, durable, load)
      touched.set(exchange, state)
    }
    return state
  }
  return {
    of,
    revert: async wrote => (await load()).revert(wrote),
    declare: rule => {
      if (rule === undefined) return
      if (rule !== 'branch' && rule !== 'conflict')
        throw new TypeError(`state is "${clip(rule)}": say what two writers come to, 'branch' or 'conflict'`)
      if (parts.seal.durable || hinted) return
      hinted = true
      parts.trace('state-needs-secret', needsSecret)
    },
    states: {
      follow: async function* ({ after, signal }) {
        yield* (await load()).follow(after, signal)
      },
      rollback: async (session, version) => (await load()).rollback(session, version),
    },
    side: {
      layers: [
        {
          // Tools that declare `state` fail early if the token is invalid.
          stage: 'unseal',
          methods: [callTool.name],
          marked: true,
          when: ({ meta, params }) => stateIn(meta) !== undefined && parts.rule(params['name'] as string) !== undefined,
          run: async (exchange, next) => {
            await of(exchange).open()
            return next()
          },
        },
      ],
      capabilities: revision => (parts.used() ? declaration(revision, stateExtension) : {}),
    },
  }
}

const hint = {
  hint: 'ctx.state of this caller lasts for one call: its client echoes no state, has no session and did not sign in. Give listen an auth, or use a client with the extension dev.vivarium/state',
}

const needsSecret = {
  hint: 'Without the option secret the states that clients carry are lost when this process ends, and unknown to others',
}

// Where a caller's state is kept.
function keepingOf({ peer, conversation, caller, meta, route }: Exchange, shared: boolean): Keeping {
  if (stateIn(meta) !== undefined || declared(peer, stateExtension) !== undefined) {
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

/** Concurrent writers: each gets its own state, or the later one is refused. */
type StateRule = 'branch' | 'conflict'

/** What the feature needs from the server. */
export interface StateParts extends StateOptions {
  readonly store: () => Promise<Store>
  /** Whether the store is shared. */
  readonly shared: boolean
  readonly seal: Seal
  /** The server's name; tokens are valid only there. */
  readonly audience: string
  readonly clock: Clock
  readonly trace: Trace
  /** Store operations that announce lifecycle events. */
  readonly announcing: (name: string, payload: Params, owner: string) => Promise<readonly Op[]>
  /** The rule of a tool. */
  readonly rule: (tool: string) => StateRule | undefined
  /** Whether some tool declares `state`; then clients are told. */
  readonly used: () => boolean
}

/** Where the state of a caller is kept. */
export type Keeping = 'token' | 'conversation' | 'session' | 'principal' | 'call'
