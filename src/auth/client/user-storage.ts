/** The tokens of whoever runs this program, in the folders that the system keeps for a user. Apart from `storage.ts`, which browsers load too. */
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { fileStorage, type TokenStorage } from './storage.ts'

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
function homeFolder(env: Environment): string {
  return folderIn(env, 'HOME') ?? homedir()
}

/** What the variable names, else this folder of the home. */
export function userFolder(env: Environment, variable: string, otherwise: string): string {
  return folderIn(env, variable) ?? join(homeFolder(env), otherwise)
}
