/** A token for a server that wants one: of a sign-in that was made before, or of one in the browser where somebody can be asked. */
import { connect } from '../../client/index.ts'
import type { Target } from '../../client/target.ts'
import { authorizationOf } from '../connecting.ts'
import type { Io } from '../io.ts'

const patienceMs = 300_000

/** The header that lets us in; undefined: there is none to be had, and the guard is all that can be judged. */
export async function tokenFor(target: Target, headers: Readonly<Record<string, string>>, io: Io): Promise<string | undefined> {
  const auth = authorizationOf(target, headers, io)
  if (auth === undefined) return undefined
  let sent: string | undefined
  const watched: typeof fetch = (url, init) => {
    sent = new Headers(init?.headers).get('authorization') ?? sent
    return fetch(url, init)
  }
  try {
    const signal = AbortSignal.any([io.signal, AbortSignal.timeout(patienceMs)])
    await using _ = await connect(target, { auth, headers, fetch: watched, signal })
  } catch {
    // Whether it lets us in is for the kit to say: a server that fails here may do so for what is judged.
    return undefined
  }
  return sent
}
