/** The hosts that a server has: those with a session, and those that listen. */
import type { Conversation, Memory } from '../../../engine/conversation.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Capabilities, Peer } from '../../../revisions/index.ts'
import { hostDialectOf, liveIn, type SetsForm } from './dialect.ts'
import type { HostDialect, KeptSelected, LiveHost } from './messages.ts'
import { SessionHost } from './session.ts'

interface HostsParts<S extends KeptSelected> {
  readonly engine: () => Engine
  readonly form: SetsForm | undefined
  /** What a host has selected with what it declared. */
  readonly selected: (declared: Capabilities) => S
  /** Those that listen, on wires without sessions. */
  readonly listening: () => Iterable<LiveHost>
}

interface Seat<S> {
  readonly host: SessionHost
  readonly selection: S
}

interface Hosts<S> {
  readonly memory: Memory<unknown>
  dialectOf(peer: Peer): HostDialect | undefined
  /** All that live, whether they can be reached now or not. */
  all(): Iterable<LiveHost>
  /** The host of a session; undefined for a plain one. */
  seat(conversation: Conversation): Seat<S> | undefined
  /** Makes known to other processes what a host has selected. */
  keep(exchange: Exchange): void
}

export function createHosts<S extends KeptSelected>(parts: HostsParts<S>): Hosts<S> {
  const dialect = ({ revision, capabilities, info }: Peer): HostDialect | undefined => {
    const said = liveIn({ revision, capabilities })
    return said === undefined ? undefined : hostDialectOf(said, info, parts.form)
  }
  const memory: Memory<Seat<S>> = {
    make: conversation => {
      const peer = conversation.peer as Peer
      const said = liveIn(peer) ?? {}
      const selection = parts.selected(said)
      return {
        selection,
        host: new SessionHost(parts.engine(), conversation, hostDialectOf(said, peer.info, parts.form), selection),
      }
    },
    key: 'live',
    save: ({ selection }) => selection.save(),
    restore: ({ selection }, saved) => selection.restore(saved),
  }
  const seat = (conversation: Conversation): Seat<S> | undefined => {
    const { peer } = conversation
    if (peer === undefined || peer.revision.era !== 'session' || liveIn(peer) === undefined) return undefined
    return conversation.recall(memory)
  }
  return {
    memory: memory as Memory<unknown>,
    dialectOf: dialect,
    seat,
    keep: ({ conversation }) => void conversation.persist?.(memory as Memory<unknown>),
    *all() {
      const { connected, sessions } = parts.engine()
      for (const conversation of [...connected, ...sessions.all()]) {
        const found = conversation.ended ? undefined : seat(conversation)
        if (found !== undefined) yield found.host
      }
      yield* parts.listening()
    },
  }
}
