/**
 * Other options for a gateway that runs. All of them are read and checked before any of them counts; then rules, clients and budgets hold
 * at once, also for calls under way, and of the servers only those are touched that are others.
 */
import type { Gateway, Reloaded } from './gateway.ts'
import type { GatewayOptions } from './options.ts'
import { changeable, type TrustSettings } from './trust/settings.ts'
import { same } from './upstreams/same.ts'
import { type Parts, trustOf } from './wiring.ts'

/** Options that are looked at once, when a gateway opens. */
const lasting = [
  'name',
  'version',
  'instructions',
  'revisions',
  'secret',
  'store',
  'askTimeout',
  'startWait',
  'drain',
  'listen',
  'limits',
  'shares',
  'names',
  'tokens',
  'audit',
  'provenance',
  'events',
] as const satisfies readonly (keyof GatewayOptions)[]

/** `resolve` reads what is to be read: a file, where options name one. */
export function reloading(
  parts: Parts,
  opened: GatewayOptions,
  resolve: (options: GatewayOptions | undefined) => Promise<GatewayOptions>,
): Gateway['reload'] {
  let current = opened
  let last: Promise<unknown> = Promise.resolve()
  const once = async (options: GatewayOptions | undefined): Promise<Reloaded> => {
    const next = await resolve(options)
    const { started, stopped, restarted } = await become(parts, current, next)
    current = next
    return { started, stopped, restarted, pending: pendingIn(opened, next) }
  }
  return options => {
    // One after the other: each is laid beside what the one before has left.
    const done = last.then(() => once(options))
    last = done.catch(() => {})
    return done
  }
}

async function become({ trust, catalog, upstreams, parking }: Parts, before: GatewayOptions, next: GatewayOptions) {
  const { servers = {} } = next
  const plan = upstreams.plan(servers)
  const settings = trustOf(next)
  const other = (name: keyof TrustSettings): boolean => !same(settings[name], trustOf(before)[name])
  const ruled = [...changeable, 'auth' as const].some(other)
  // Throws where it is mistaken, before anything has changed.
  if (ruled) trust.change(settings)
  catalog.begin(Object.keys(servers))
  if (ruled) {
    catalog.renew()
    parking.withdraw(trust.withdraw())
  }
  // What is gone is hidden before it ends.
  else catalog.flush()
  if (other('pins')) for (const { name } of upstreams.list()) upstreams.relist(name)
  const applied = await upstreams.apply(plan)
  // Who is told that it is done finds what is gone listed no more.
  catalog.flush()
  return applied
}

function pendingIn(opened: GatewayOptions, next: GatewayOptions): readonly string[] {
  const others = lasting.filter(name => !same(opened[name], next[name]))
  return same(fixedOut(opened.auth), fixedOut(next.auth)) ? others : [...others, 'auth']
}

/** Fixed tokens may be others at any time, as long as there are some. */
function fixedOut(auth: GatewayOptions['auth']): unknown {
  return auth !== undefined && 'tokens' in auth ? 'tokens' : auth
}
