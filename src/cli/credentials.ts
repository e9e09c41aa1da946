/** What a caller shows of itself: headers, a token by the name of its variable, or a sign-in with the browser. */
import { homedir } from 'node:os'
import { carriesCredentials } from '../auth/client/addresses.ts'
import { type Authorization, AuthorizationError, type Browser, cli, oauth } from '../auth/client/index.ts'
import { userStorage } from '../auth/client/user-storage.ts'
import type { Target } from '../client/target.ts'
import { expand } from '../host/config/expand.ts'
import { clip } from '../jsonrpc/limits.ts'
import { CliError } from './exit.ts'
import type { Io } from './io.ts'

/** Variables are filled in here, so that secrets stand neither in a history nor in a list of processes. */
export function headersOf(
  lines: readonly string[],
  bearerEnv: string | undefined,
  { env }: Io,
): Readonly<Record<string, string>> {
  const headers = Object.fromEntries(
    lines.map(line => {
      const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):\s*(.*)$/.exec(line) ?? []
      if (name === undefined || value === undefined)
        throw new CliError(1, `--header: "${clip(line)}" is no header`, "Write 'Name: value'")
      const expanded = expand(value, { env, folder: process.cwd(), home: homedir() })
      if ('why' in expanded) throw new CliError(1, `--header ${name}: ${expanded.why.message}`, expanded.why.fix)
      return [name, expanded.text]
    }),
  )
  if (bearerEnv === undefined) return headers
  const token = env[bearerEnv]
  if (token === undefined || token === '')
    throw new CliError(1, `--bearer-env: the variable ${clip(bearerEnv)} is not set`, `Set it: export ${clip(bearerEnv)}=…`)
  return { ...headers, authorization: `Bearer ${token}` }
}

/** Nothing of it is loaded or asked before a server refuses. */
export function authorizationOf(target: Target, headers: Readonly<Record<string, string>>, io: Io): Authorization | undefined {
  const hasAddress = typeof target === 'string' || target instanceof URL
  if (!hasAddress || Object.keys(headers).some(name => name.toLowerCase() === 'authorization')) return undefined
  // Nobody signs in where anybody on the way could read it; a server that does not ask for it may be spoken with all the same.
  if (!carriesCredentials(new URL(target))) return undefined
  return oauth({ storage: userStorage(io.env), browser: io.interactive ? cli() : nobody })
}

const unseen = (): Promise<never> =>
  Promise.reject(new AuthorizationError('browser', 'it asks for a sign-in, and there is no terminal to begin one from'))

/** There is nobody who could look at a page; so no client is registered for it either. Tokens that are kept are used and renewed. */
const nobody: Browser = { redirectUri: unseen, authorize: unseen }
