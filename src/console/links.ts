/**
 * Links that another process prints: `vivarium gateway console FILE` writes one into the store of the gateway, where the console looks
 * for it. Whoever can write there can answer approvals anyway. The console in turn leaves its address there.
 */
import { hostname } from 'node:os'
import type { Cancel, Clock } from '../core/clock.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { put, remove, type Store } from '../stores/store.ts'
import type { Role } from './contract/session.ts'
import { allRoles, hashOf, type LinkGrant, linkMs, newToken } from './login.ts'

/** A running console, as it announces itself. */
export interface AnnouncedConsole {
  /** Names the start of its process. */
  readonly start: string
  readonly url: string
  /** The machine that it runs on: its address is a loopback one there. */
  readonly replica: string
  readonly pid: number
}

const place = 'gateway/console/'
const announceMs = 60_000
const renewMs = 20_000

/** Leaves the address of a console in the store until it is closed. */
export function announceConsole(
  store: Store,
  clock: Clock,
  console: AnnouncedConsole,
  failed: (error: unknown) => void,
): () => Promise<void> {
  const key = `${place}at/${console.start}`
  let timer: Cancel | undefined
  let ended = false
  let writing: Promise<unknown> = Promise.resolve()
  const renew = (): void => {
    writing = store.commit([put(key, JSON.stringify(console), { ttl: announceMs })]).catch(failed)
    timer = ended ? undefined : clock.setTimeout(renew, renewMs, true)
  }
  renew()
  return async () => {
    ended = true
    timer?.()
    await writing
    await store.commit([remove(key)]).catch(failed)
  }
}

/** The consoles that run now, on all replicas. */
export async function runningConsoles(store: Store): Promise<readonly AnnouncedConsole[]> {
  const found: AnnouncedConsole[] = []
  for (const { value } of await store.scan(`${place}at/`)) {
    const said: unknown = JSON.parse(value)
    if (isRecord(said) && typeof said['url'] === 'string' && typeof said['start'] === 'string')
      found.push(said as unknown as AnnouncedConsole)
  }
  return found.sort((one, other) => Number(other.replica === hostname()) - Number(one.replica === hostname()))
}

/** Writes a link for one console into the store, and gives its address. */
export async function storeLink(store: Store, console: AnnouncedConsole, grant: LinkGrant): Promise<string> {
  const token = newToken()
  const key = `${place}link/${console.start}/${hashOf(token)}`
  await store.commit([put(key, JSON.stringify({ by: grant.by, roles: grant.roles }), { ttl: linkMs })])
  return linkOf(console.url, token)
}

/** Redeems a link that was stored; each works once, also where two requests bring it at the same time. */
export async function redeemStored(store: Store, start: string, hash: string): Promise<LinkGrant | undefined> {
  const entry = await store.get(`${place}link/${start}/${hash}`)
  if (entry === undefined) return undefined
  const { ok } = await store.commit([remove(entry.key, entry.version)])
  const said: unknown = JSON.parse(entry.value)
  if (!ok || !isRecord(said) || typeof said['by'] !== 'string' || !Array.isArray(said['roles'])) return undefined
  const roles = said['roles']
  return { by: said['by'], roles: allRoles.filter((role: Role) => roles.includes(role)) }
}

/** The token lies in the fragment, which browsers send to nobody. */
export function linkOf(url: string, token: string): string {
  return `${url}#k=${token}`
}
