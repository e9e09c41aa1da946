/** Signing in, in the place of a gateway, at a server behind it: with what its entry says, so that the tokens are the ones it looks for. */
import { cli } from '../../auth/client/index.ts'
import { userStorage, userTokens } from '../../auth/client/user-storage.ts'
import { connect } from '../../client/index.ts'
import type { GatewayConfig } from '../../gateway/index.ts'
import { authOf } from '../../gateway/upstreams/auth.ts'
import { signInWith } from '../../gateway/upstreams/credentials.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { CliError } from '../exit.ts'
import { unreachable } from '../failures.ts'
import type { Io } from '../io.ts'
import { printerOf } from '../print.ts'
import { serverNamed } from './named.ts'

export async function signIn(config: GatewayConfig<unknown>, name: string, io: Io): Promise<number> {
  const server = serverNamed(config, name)
  const auth = server.auth === undefined ? undefined : authOf(server.auth)
  if (typeof server.target !== 'string' || auth?.signIn !== true)
    throw new CliError(1, `The entry of ${clip(name)} does not say that somebody signs in for it`, 'Add to it: auth: sign-in')
  if (!io.interactive) throw new CliError(3, 'There is no terminal to sign in from', 'Run it in a terminal on the same account')
  const authorization = await signInWith(auth, userStorage(io.env), cli())
  try {
    const { headers } = server
    const client = await connect(server.target, {
      auth: authorization,
      signal: io.signal,
      ...(headers !== undefined && { headers }),
    })
    await client.close()
  } catch (error) {
    throw unreachable(error, server.target)
  }
  printerOf(io).line(`Signed in at ${server.target}. The tokens are kept, encrypted, in ${userTokens(io.env)}`)
  return 0
}
