/** State that lasts from call to call, for handlers; what keeps it is loaded when one first touches it. */
import type { Clock } from '../../../core/clock.ts'
import { type Duration, toMilliseconds } from '../../../core/duration.ts'
import type { Occurrence } from '../../../core/feed/occurrence.ts'
import type { Seal } from '../../../core/handle.ts'
import type { UndoneParts } from '../../../core/journal/rollback.ts'
import type { Trace } from '../../../core/log.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import type { Op, Store } from '../../../stores/store.ts'
import { askingMethods } from '../../mcp/input-required/messages.ts'
import { callTool } from '../../mcp/tools/messages.ts'
import { CallState } from './call-state.ts'
import { stateExtension, stateIn } from './messages.ts'
import type { StateRuntime } from './runtime.ts'

export type { CallState } from './call-state.ts'

export interface StateOptions {
  /** How long a state lasts that nobody uses. Default 24 hours. */
  readonly ttl?: Duration
  /**
   * Clients can subscribe to what happens to their states: `session_created`, `session_renewed`, `session_expired` and
   * `session_invalidated`. Default false.
   */
  readonly events?: boolean
}

/** What two calls that wrote on the same state come to: a state each, or a refusal for the later one. */
export type StateRule = 'branch' | 'conflict'

export interface StateParts extends StateOptions {
  readonly store: () => Promise<Store>
  /** Whether the store was given, so that others may share it. */
  readonly shared: boolean
  readonly seal: Seal
  /** Which server this is: a token is good for no other. */
  readonly audience: string
  readonly clock: Clock
  readonly trace: Trace
  /** The writes that tell its owner what happens to a session, where that is offered. */
  readonly announcing: (name: string, payload: Params, owner: string) => Promise<readonly Op[]>
  /** The rule of a tool. */
  readonly rule: (tool: string) => StateRule | undefined
  /** Whether some tool has one: then clients are told of it. Tokens are given to those who declare them all the same. */
  readonly used: () => boolean
}

/** What an operator can do with the states that are kept. */
export interface States {
  /** What happens to sessions of state, from a cursor on or from the oldest that is known, until the signal. */
  follow(options: { readonly after?: number; readonly signal: AbortSignal }): AsyncGenerator<Occurrence, void>
  /** Whatever was written in a session after that version is no longer good, nor is what was built on it. */
  rollback(session: string, version: number): Promise<void>
}

export interface StateServer {
  readonly side: Side
  readonly states: States
  /** What a tool says of its state. Throws where it makes no sense; hints at what is missing. */
  declare(rule: string | undefined): void
  /** How what a step of a unit of work wrote is taken back. */
  revert(wrote: unknown): Promise<UndoneParts>
  /** The state of a call. */
  of(exchange: Exchange): CallState
}

export function stateServer(parts: StateParts): StateServer {
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
          // A tool that says what it does with state finds out before it does anything whether there is one.
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

/** Where the state of a caller is kept. */
export type Keeping = 'token' | 'conversation' | 'session' | 'principal' | 'call'

function keepingOf({ peer, conversation, caller, meta, route }: Exchange, shared: boolean): Keeping {
  if (stateIn(meta) !== undefined || declared(peer, stateExtension) !== undefined) {
    // Results of other methods have no place for it.
    if ((askingMethods as readonly string[]).includes(route.method.name)) return 'token'
  }
  if (conversation.connection !== undefined) return 'conversation'
  if (conversation.session !== undefined) return shared ? 'session' : 'conversation'
  return caller.principal === undefined ? 'call' : 'principal'
}

function isDurable(exchange: Exchange, seal: Seal): boolean {
  const keeping = keepingOf(exchange, true)
  return keeping === 'token' ? seal.durable || exchange.caller.ephemeral !== true : keeping !== 'call'
}
