/** States that their callers carry: sealed whole in a token, or where they are too large for one, its place on the store. */
import { HandleError, type HandlePurpose } from '../../../core/handle.ts'
import { Problem } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { accountOf, ownerOf } from '../../../engine/owner.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { type Op, put } from '../../../stores/store.ts'
import type { LargeStates } from './keepers.ts'
import { type Lifecycle, readState, stateExtension, stateIn } from './messages.ts'
import { graceMs, type StatePlace, type StateRuntimeParts } from './runtime.ts'
import { expiredState, firstVersion, invalidState, readStateVersion, type StateVersion } from './version.ts'

interface TokenParts extends StateRuntimeParts {
  readonly large: LargeStates
  readonly isUndone: (version: StateVersion) => Promise<boolean>
  readonly tell: (name: Lifecycle, session: string, owner: string, also?: readonly Op[]) => Promise<void>
}

export interface StateTokenSealer {
  /** What the call came with. Throws where it is not good, or no longer. */
  open(exchange: Exchange): Promise<StatePlace>
  seal(exchange: Exchange, version: StateVersion): Promise<string>
}

export function createTokens(parts: TokenParts): StateTokenSealer {
  const { opened: store, clock, seal } = parts
  const purpose = ({ caller }: Exchange): HandlePurpose => ({
    kind: 'session-state',
    principal: caller.principal?.id,
    audience: parts.audience,
  })
  const whole = async (version: StateVersion): Promise<unknown> => {
    if (version.elsewhere === undefined) return version.data
    const entry = await store.get(dataKey(version))
    // Its time is not over, but the store lost it, or was another one.
    if (entry === undefined) throw expiredState()
    return JSON.parse(entry.value)
  }
  return {
    open: async exchange => {
      const given = stateIn(exchange.meta)
      const said = given === undefined ? {} : readState(given)
      if (said === undefined)
        throw new McpError('invalid-params', `params._meta["${stateExtension}"] must be an object with the text session_state`)
      if (said.session_state === undefined) return { value: undefined, version: firstVersion(), keeper: undefined }
      const version = await unsealed(parts, said.session_state, purpose(exchange))
      if (version.expires <= clock.now()) {
        const told = put(`session-state/over/${version.session}`, '', { ifAbsent: true, ttl: graceMs })
        await parts.tell('session_expired', version.session, await ownerOf(exchange), [told])
        throw expiredState()
      }
      if (await parts.isUndone(version)) throw invalidState('The state that this call came with was undone')
      return { value: await whole(version), version, keeper: undefined }
    },
    seal: async (exchange, version) => {
      const content = { ...purpose(exchange), expiresAt: version.expires + graceMs }
      try {
        return await seal.seal({ ...content, data: version })
      } catch (error) {
        if (!(error instanceof Problem && error.code === 'PAYLOAD_TOO_LARGE')) throw error
        const { data, ...rest } = version
        const [key, text, ttl] = [dataKey(version), JSON.stringify(data), version.expires - clock.now() + graceMs]
        const noted = await parts.large.admitting(await accountOf(exchange), key, text.length, ttl)
        await store.commit([put(key, text, { ttl }), ...noted])
        return seal.seal({ ...content, data: { ...rest, elsewhere: true } })
      }
    },
  }
}

async function unsealed({ seal }: TokenParts, token: string, purpose: HandlePurpose): Promise<StateVersion> {
  const unknown = () => invalidState('The state that this call came with is not one that this server gave to this caller')
  try {
    const version = readStateVersion(await seal.open(token, purpose))
    if (version === undefined) throw unknown()
    return version
  } catch (error) {
    throw error instanceof HandleError ? unknown() : error
  }
}

function dataKey({ session, tag }: StateVersion): string {
  return `session-state/at/${session}/${tag}`
}
