/** Where tokens and registrations are kept between requests, or between runs. */
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'

/** Text by key. Keys name issuer, resource and client; values are secrets. */
export interface TokenStorage {
  get(key: string): Promise<string | undefined>
  set(key: string, value: string): Promise<void>
  delete(key: string): Promise<void>
}

/** Keeps nothing beyond the life of the process. */
export function memoryStorage(): TokenStorage {
  const entries = new Map<string, string>()
  return {
    get: async key => entries.get(key),
    set: async (key, value) => void entries.set(key, value),
    delete: async key => void entries.delete(key),
  }
}

/** Options of a token storage in a file. */
export interface FileStorageOptions {
  /** The key is made from it: at least 16 characters, from a keychain or the environment, never beside the file. */
  readonly secret: string
}

/**
 * Keeps tokens in one file, encrypted (AES-256-GCM) and readable by its owner alone. Several processes may share it.
 * @example
 * const storage = fileStorage('.vivarium/tokens', { secret: process.env.TOKEN_SECRET })
 */
export function fileStorage(path: string, options: FileStorageOptions): TokenStorage {
  if (typeof options?.secret !== 'string' || options.secret.length < 16) {
    throw new TypeError('fileStorage needs a secret of at least 16 characters, kept apart from the file')
  }
  let opened: Promise<TokenStorage> | undefined
  const open = (): Promise<TokenStorage> => {
    opened ??= import('./file-storage.ts').then(({ openFileStorage }) => openFileStorage(path, options.secret))
    return opened
  }
  return {
    get: async key => (await open()).get(key),
    set: async (key, value) => (await open()).set(key, value),
    delete: async key => (await open()).delete(key),
  }
}

// The tokens of whoever runs this program, in the folders that the system keeps for a user.

type Environment = Readonly<Record<string, string | undefined>>

/** Tokens are kept as safely as the user's own files are. The key lies in another folder, or in VIVARIUM_TOKEN_SECRET. */
export function userStorage(env: Environment): TokenStorage {
  return fileStorage(userTokens(env), { secret: secretOf(env) })
}

/** The file that they are in. */
export function userTokens(env: Environment): string {
  return join(folder(env, 'XDG_DATA_HOME', '.local/share'), 'tokens')
}

function secretOf(env: Environment): string {
  const given = env['VIVARIUM_TOKEN_SECRET']
  if (given !== undefined && given !== '') return given
  const file = join(folder(env, 'XDG_CONFIG_HOME', '.config'), 'key')
  if (existsSync(file)) return readFileSync(file, 'utf8').trim()
  const secret = randomBytes(32).toString('base64url')
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  writeFileSync(file, `${secret}\n`, { mode: 0o600 })
  return secret
}

function folder(env: Environment, variable: string, otherwise: string): string {
  return join(userFolder(env, variable, otherwise), 'vivarium')
}

// Folders that are the user's own, as the variables of the system name them. One that is empty or relative names none, as the XDG Base
// Directory Specification has it: taken as it is, it would lead into the folder that one works in, and files that a stranger put there
// would pass for the user's.

/** What the variable names; undefined where that is no folder of the user's. */
export function folderIn(env: Environment, variable: string): string | undefined {
  const named = env[variable]
  return named !== undefined && isAbsolute(named) ? named : undefined
}

/** The home, whatever the variables say. */
function homeIn(env: Environment): string {
  return folderIn(env, 'HOME') ?? homedir()
}

/** What the variable names, else this folder of the home. */
export function userFolder(env: Environment, variable: string, otherwise: string): string {
  return folderIn(env, variable) ?? join(homeIn(env), otherwise)
}
