/**
 * What is connected under the name of a server. Names are given anew: an answer that was about one server must not count for another
 * that gets its name later. Headers and variables are no part of it, because credentials change while the server stays the same.
 */
import { isRecord } from '../../jsonrpc/message.ts'
import type { KnownServer } from './entry.ts'

/** Undefined where nothing is known but the name: the program itself opens the connection. */
export function identityOf(entry: Pick<KnownServer, 'target'> | undefined): string | undefined {
  const target = entry?.target
  if (typeof target === 'string' || target instanceof URL) return placeOf(target)
  if (!isRecord(target) || !('command' in target)) return undefined
  const { command, args = [], cwd } = target as { command: string; args?: readonly string[]; cwd?: string }
  return JSON.stringify(['command', command, args, cwd ?? null])
}

/** Queries and user names may hold credentials. */
function placeOf(target: string | URL): string | undefined {
  if (!URL.canParse(target)) return undefined
  const { protocol, host, pathname } = new URL(target)
  return JSON.stringify(['url', protocol, host, pathname])
}
