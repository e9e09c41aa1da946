/**
 * Session state of upstreams (the session-state extension). A client holds one token of the gateway, in which the tokens of all its
 * upstreams are sealed. The seal is bound to the client, and an upstream only ever sees its own token.
 */
import type { Clock } from '../../core/clock.ts'
import type { Seal } from '../../core/handle.ts'
import { problem } from '../../core/problem.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { declaredSettings } from '../../engine/extensions.ts'
import { ownerOf } from '../../engine/owner.ts'
import { readState, stateExtension, stateIn } from '../../features/reliability/session-state/messages.ts'
import { isRecord, type Params } from '../../jsonrpc/message.ts'

/** The latest token of each upstream. */
type Tokens = Readonly<Record<string, string>>

/** The purpose of the seal. */
const kind = 'gateway-state'
/** Lifetime of a token whose upstream gives no expiry. */
const lastsMs = 86_400_000

/** Exchanges state tokens of upstreams for one sealed token per client, and back. */
export class UpstreamStateTokens {
  readonly #seal: Seal
  readonly #clock: Clock

  constructor(seal: Seal, clock: Clock) {
    this.#seal = seal
    this.#clock = clock
  }

  /** The upstream's part of the token that came with a call. Undefined, without a promise, where the call has none. */
  given(upstream: string, exchange: Exchange): Promise<Params | undefined> | undefined {
    if (stateIn(exchange.meta) === undefined) return undefined
    return this.#opened(exchange).then(tokens => {
      const token = Object.hasOwn(tokens, upstream) ? tokens[upstream] : undefined
      return token === undefined ? undefined : { [stateExtension]: { session_state: token } }
    })
  }

  /** The `_meta` of a result with the gateway's token in place of the upstream's. */
  async returned(upstream: string, meta: Params, exchange: Exchange): Promise<Params> {
    const { [stateExtension]: said, ...rest } = meta
    const state = readState(said)
    if (state === undefined || declaredSettings(exchange.peer, stateExtension) === undefined) return rest
    const { session_state: token, expires_at: until } = state
    if (token === undefined) return Object.keys(state).length === 0 ? rest : { ...rest, [stateExtension]: state }
    const expiresAt = Date.parse(until ?? '') || this.#clock.now() + lastsMs
    const purpose = { kind, principal: await ownerOf(exchange), expiresAt }
    const others = stateIn(exchange.meta) === undefined ? {} : await this.#opened(exchange)
    const all = { ...others, [upstream]: token }
    // Too large to seal: keep only the newest token, the one that the client needs next.
    const sealed = await this.#seal
      .seal({ ...purpose, data: all })
      .catch(() => this.#seal.seal({ ...purpose, data: { [upstream]: token } }))
    return { ...rest, [stateExtension]: { ...state, session_state: sealed } }
  }

  /** The tokens inside the client's token. Throws where it was not made for this client, or has expired. */
  async #opened(exchange: Exchange): Promise<Tokens> {
    const token = readState(stateIn(exchange.meta))?.session_state
    const purpose = { kind, principal: await ownerOf(exchange) }
    const data = await this.#seal.open(token, purpose).catch(() => undefined)
    if (isRecord(data)) return data as Tokens
    throw problem('STATE_INVALID', 'The state was not issued to this client, or has expired', {
      suggestion: 'Repeat the call without it',
      details: { recovery: 'restart' },
    })
  }
}
