/** The credentials in the entry of a server: variables filled in, files found, mistakes told at their lines. */
import { accessSync, constants } from 'node:fs'
import { resolve } from 'node:path'
import { quoted } from '../../core/why.ts'
import type { ConfigEnvironment } from '../../host/config/expand.ts'
import type { Placed } from '../../host/config/jsonc.ts'
import type { ParsedConfig } from '../../host/config/read.ts'
import { authFaults, type UpstreamAuth, type UpstreamAuthOption } from '../upstreams/auth.ts'
import { expanded } from './expanded.ts'
import type { FoundServer, TellFault } from './read.ts'

/** Where the entry of a server says it. */
export function authAt({ root }: ParsedConfig, server: string): Placed | undefined {
  for (const shape of ['mcpServers', 'servers']) {
    const entry = root?.members?.get(shape)?.members?.get(server)
    if (entry !== undefined) return entry.members?.get('auth')
  }
  return undefined
}

/**
 * `foreign`: the file is another program's, which may say by this name what it likes. Only what is ours in every part is taken from it.
 */
export function readAuth(
  at: Placed,
  server: FoundServer,
  around: ConfigEnvironment,
  foreign: boolean,
  tell: TellFault,
): UpstreamAuthOption | undefined {
  let wrong = false
  const note: TellFault = (place, rule, message, fix) => {
    wrong = true
    if (!foreign) tell(place, rule, `The server ${quoted(server.name)}: ${message}`, fix)
  }
  const filled = expanded(at, 'auth', around, note)
  if (wrong || filled.value === null) return undefined
  const { target } = server
  for (const { member, message, fix } of authFaults(filled.value, typeof target === 'string' ? target : undefined))
    note((member === undefined ? undefined : filled.members?.get(member)) ?? filled, 'gateway.auth', message, fix)
  if (!wrong && hasAuthorization(server))
    note(filled, 'gateway.auth', 'auth and headers.authorization exclude each other', 'Leave one of them out')
  if (wrong) return undefined
  const placed = located(filled.value as UpstreamAuthOption, around)
  for (const file of filesIn(placed))
    if (!isReadable(file)) note(filled, 'gateway.auth', `the file ${quoted(file)} cannot be read`, 'Correct the path')
  return wrong ? undefined : placed
}

function hasAuthorization({ headers = {} }: FoundServer): boolean {
  return Object.keys(headers).some(name => name.toLowerCase() === 'authorization')
}

/** Paths count from the folder of the file. */
function located(auth: UpstreamAuthOption, { folder, home }: ConfigEnvironment): UpstreamAuthOption {
  if (auth === 'sign-in') return auth
  const path = (text: string): string => resolve(folder, text.replace(/^~(?=\/)/, home))
  const { clientSecretFile: secret, privateKeyFile: key } = auth
  return {
    ...auth,
    ...(secret !== undefined && { clientSecretFile: path(secret) }),
    ...(key !== undefined && { privateKeyFile: path(key) }),
  }
}

function filesIn(auth: UpstreamAuthOption): readonly string[] {
  if (auth === 'sign-in') return []
  const { clientSecretFile, privateKeyFile }: UpstreamAuth = auth
  return [clientSecretFile, privateKeyFile].filter(file => file !== undefined)
}

function isReadable(file: string): boolean {
  try {
    accessSync(file, constants.R_OK)
    return true
  } catch {
    return false
  }
}
