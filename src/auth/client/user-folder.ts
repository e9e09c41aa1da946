/**
 * Folders that are the user's own, as the variables of the system name them. One that is empty or relative names none, as the XDG Base
 * Directory Specification has it: taken as it is, it would lead into the folder that one works in, and files that a stranger put there
 * would pass for the user's.
 */
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

type Environment = Readonly<Record<string, string | undefined>>

/** What the variable names; undefined where that is no folder of the user's. */
export function folderIn(env: Environment, variable: string): string | undefined {
  const named = env[variable]
  return named !== undefined && isAbsolute(named) ? named : undefined
}

/** The home, whatever the variables say. */
export function homeIn(env: Environment): string {
  return folderIn(env, 'HOME') ?? homedir()
}

/** What the variable names, else this folder of the home. */
export function userFolder(env: Environment, variable: string, otherwise: string): string {
  return folderIn(env, variable) ?? join(homeIn(env), otherwise)
}
