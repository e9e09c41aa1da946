/**
 * Whether a gateway can listen as it is told to. One answer for `gateway.listen()`, for `vivarium gateway` and for its `--check`, so that
 * what is found right before the start is what starts.
 */

import { checkListenPaths } from '../../transports/http/listen.ts'
import { checkNames, isLoopbackHost } from '../../transports/http/names.ts'
import type { AuthSettings } from '../trust/settings.ts'
import type { ListenPlace } from './frame.ts'

interface Serving {
  readonly place: ListenPlace
  readonly auth: AuthSettings | undefined
  /** Somebody said in words that whoever reaches it may call it. */
  readonly unprotected: boolean
}

interface ServingFault {
  /** The part of the settings that is at fault. */
  readonly member: 'listen' | 'auth'
  readonly message: string
  readonly fix: string
}

export function servingFault({ place, auth, unprotected }: Serving): ServingFault | undefined {
  const { host, path = '/mcp' } = place
  if (unprotected && auth !== undefined)
    return {
      member: 'auth',
      message: '--unprotected (auth: none) contradicts auth: no token would be checked',
      fix: 'Leave out --unprotected, or remove auth',
    }
  const misplaced = thrownBy(() => checkListenPaths(path, place)) ?? thrownBy(() => checkNames(place))
  if (misplaced !== undefined) return { member: 'listen', message: misplaced, fix: 'Correct listen' }
  if (isLoopbackHost(host) || unprotected) return undefined
  if (auth === undefined)
    return {
      member: 'listen',
      message: `Others can reach the gateway on ${host}, and nothing says who may call it`,
      fix: 'Add auth with tokens or an issuer, or listen on 127.0.0.1; --unprotected (auth: none) lets everybody in',
    }
  if (auth.resource !== undefined) return undefined
  return {
    member: 'auth',
    message: `auth has no resource, and the gateway listens on ${host}: nobody here knows by which URL clients reach it`,
    fix: 'Add auth.resource: the URL that clients use, such as https://mcp.example.com/mcp',
  }
}

function thrownBy(check: () => void): string | undefined {
  try {
    check()
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
