/**
 * When somebody is asked about feature sets: about those that no rule speaks of, and about what an enabled one wants to do without
 * declaring it. Questions of one server come one after the other, and the same one comes once.
 */
import type { SetUse } from '../features/live/dialects/messages.ts'
import type { FeatureSetFacts } from '../features/live/feature-sets/messages.ts'
import type { Policy } from '../policy/policy.ts'
import type { HostFoundation } from './foundation.ts'

export interface Reviewing {
  /** Asks about feature sets that no rule speaks of, once for what they declare. */
  review(server: string, declared: ReadonlyMap<string, FeatureSetFacts>): void
  /** Asks whether an enabled set may do what it does not declare, once for what it declares. */
  widen(server: string, featureSet: string, use: SetUse): void
}

/** Questions of one server about undeclared uses that are open at once; what comes beyond is refused without one. */
const mostOpen = 10
/** Of all servers; who goes beyond that is asked about again. */
const mostRemembered = 10_000

export function reviewing(foundation: Pick<HostFoundation, 'servers' | 'audit' | 'impaired'>, policy: Policy): Reviewing {
  const asked = new Map<string, string>()
  const widened = new Set<string>()
  const open = new Map<string, number>()
  const waiting = new Map<string, ReadonlyMap<string, FeatureSetFacts>>()
  const inLine = lines(error => foundation.impaired(error))
  const reviewNext = async (server: string): Promise<void> => {
    const next = waiting.get(server)
    waiting.delete(server)
    if (next !== undefined) await policy.review(server, next)
  }
  return {
    // Whoever said no is not asked again while nothing else is declared.
    review: (server, declared) => {
      const now = JSON.stringify([...declared].map(([name, facts]) => [name, words(facts)]))
      if (asked.get(server) === now) return
      asked.set(server, now)
      const queued = waiting.has(server)
      // One review at a time, and then of what is declared by then.
      waiting.set(server, declared)
      if (!queued) inLine(server, () => reviewNext(server))
    },
    widen: (server, featureSet, use) => {
      const facts = foundation.servers.get(server)?.live?.featureSets.get(featureSet)
      const key = JSON.stringify([server, featureSet, use, words(facts)])
      const count = open.get(server) ?? 0
      if (widened.has(key) || count >= mostOpen) return
      if (widened.size >= mostRemembered) widened.clear()
      widened.add(key)
      open.set(server, count + 1)
      inLine(server, async () => {
        open.set(server, (open.get(server) ?? 1) - 1)
        const { yes, why, rule } = await policy.widen(server, featureSet, use)
        const said = yes ? { rule } : { why }
        await foundation.audit.note({
          server,
          featureSet,
          kind: 'use',
          outcome: yes ? 'success' : 'refused',
          detail: use,
          ...said,
        })
      })
    },
  }
}

function words(facts: FeatureSetFacts | undefined): readonly unknown[] {
  const { description, uses, scoped, rollback, hostState } = facts ?? {}
  return [description, uses, scoped, rollback, hostState]
}

/** One job of a server after the other. */
function lines(failed: (error: unknown) => void): (server: string, job: () => Promise<void>) => void {
  const last = new Map<string, Promise<void>>()
  return (server, job) => {
    const before = last.get(server) ?? Promise.resolve()
    const next = before
      .then(job)
      .catch(failed)
      .finally(() => {
        if (last.get(server) === next) last.delete(server)
      })
    last.set(server, next)
  }
}
