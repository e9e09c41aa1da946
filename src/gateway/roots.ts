/** An upstream that has asked for a client's folders hears when that client says that they are others now. */
import type { Client } from '../client/client.ts'
import type { Server } from '../server/api.ts'

/** What it gives back is to be told who asked whom. */
export function followRoots(
  server: Server,
  client: (upstream: string) => Client | undefined,
): (upstream: string, owner: object) => void {
  const askers = new WeakMap<object, Set<string>>()
  server.engine.onRoots.add(conversation => {
    for (const upstream of askers.get(conversation) ?? []) client(upstream)?.rootsChanged()
  })
  return (upstream, owner) => {
    const known = askers.get(owner) ?? new Set()
    askers.set(owner, known.add(upstream))
  }
}
