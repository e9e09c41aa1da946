/** What the book of states knows of servers: by what they declare now, or declared when they were last there. */
import type { HostServer } from '../servers/server.ts'
import type { StateBookPort } from './book.ts'
import type { StateKeeper } from './growth.ts'

interface Known {
  readonly keeper: StateKeeper
  readonly rollback: boolean
}

/** Servers may declare ever new sets. */
const remembered = 10_000

/** Answers what the book of states asks about servers. */
export function stateBookPort(serverOf: (name: string) => HostServer | undefined): StateBookPort {
  /** By server and set, for while it is down. */
  const last = new Map<string, Known>()
  const look = (server: string, featureSet: string): Known => {
    const key = JSON.stringify([server, featureSet])
    const live = serverOf(server)?.live
    const facts = live?.featureSets.get(featureSet)
    if (live === undefined || facts === undefined) return last.get(key) ?? { keeper: 'either', rollback: false }
    // From 0.4 on a server does not declare who keeps its state: data or a patch in a result says so.
    const silent = live.dialect.label === '0.4' || live.dialect.label === '0.5'
    const keeper = facts.hostState === true ? 'host' : silent ? 'either' : 'server'
    const known: Known = { keeper, rollback: facts.rollback === true }
    if (last.size >= remembered && !last.has(key)) last.delete(last.keys().next().value ?? '')
    last.set(key, known)
    return known
  }
  return {
    keeper: (server, featureSet) => look(server, featureSet).keeper,
    rollsBack: (server, featureSet) => look(server, featureSet).rollback,
    ask: async (server, featureSet, checkpoint, signal) => {
      const live = serverOf(server)?.live
      if (live === undefined) return { success: false, checkpoint, reason: 'the server is not there' }
      return live.rollback(featureSet, checkpoint, signal === undefined ? {} : { signal })
    },
  }
}
