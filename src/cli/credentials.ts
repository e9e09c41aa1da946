/** What a caller shows of itself: headers, a token by the name of its variable, or a sign-in with the browser. */
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { carriesCredentials } from '../auth/client/addresses.ts'
import { type Authorization, AuthorizationError, type Browser, cli, fileStorage, oauth } from '../auth/client/index.ts'
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
  const storage = fileStorage(join(folder(io, 'XDG_DATA_HOME', '.local/share'), 'tokens'), { secret: secretOf(io) })
  return oauth({ storage, browser: io.interactive ? cli() : nobody })
}

const unseen = (): Promise<never> =>
  Promise.reject(new AuthorizationError('browser', 'it asks for a sign-in, and there is no terminal to begin one from'))

/** There is nobody who could look at a page; so no client is registered for it either. Tokens that are kept are used and renewed. */
const nobody: Browser = { redirectUri: unseen, authorize: unseen }

/** Tokens are kept as safely as the user's own files are. The key lies in another folder, or in VIVARIUM_TOKEN_SECRET. */
function secretOf(io: Io): string {
  const given = io.env['VIVARIUM_TOKEN_SECRET']
  if (given !== undefined && given !== '') return given
  const file = join(folder(io, 'XDG_CONFIG_HOME', '.config'), 'key')
  if (existsSync(file)) return readFileSync(file, 'utf8').trim()
  const secret = randomBytes(32).toString('base64url')
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  writeFileSync(file, `${secret}\n`, { mode: 0o600 })
  return secret
}

function folder({ env }: Io, variable: string, otherwise: string): string {
  return join(env[variable] ?? join(env['HOME'] ?? homedir(), otherwise), 'vivarium')
}
