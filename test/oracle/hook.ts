/**
 * Every frame that an engine of ours emits in this process passes by the oracle, whatever test makes it do so. It hangs on
 * the engine's two doors, so that neither the product nor the tests know of it.
 */
import { Engine } from '../../src/engine/engine.ts'
import type { Caller, Connection, Lane } from '../../src/jsonrpc/connection.ts'
import { tapConnection } from '../../src/recording/tap.ts'
import { Link } from './link.ts'
import { Rules } from './rules.ts'
import type { Judged } from './schemas.ts'

export interface Oracle {
  /** Whether what comes in is ours as well: a peer in another process that a test started. */
  trustPeers: boolean
  /** A link of its own, for frames that pass no engine here. */
  link(): Link
  note(from: 'client' | 'server', text: string, link: Link): void
  /** What was found since the last time. */
  take(): string[]
}

export function createOracle(folder: string): Oracle {
  const books = new Map<Judged, Rules>()
  const rules = (revision: Judged): Rules => {
    const book = books.get(revision) ?? new Rules(folder, revision)
    books.set(revision, book)
    return book
  }
  let found: string[] = []
  return {
    trustPeers: false,
    link: () => new Link(rules),
    note: (from, text, link) => {
      const verdict = link.see(from, text)
      for (const fault of verdict?.faults ?? []) found.push(`${verdict?.revision} ${from}: ${fault}\n  in ${text.slice(0, 2000)}`)
    },
    take: () => {
      const all = found
      found = []
      return all
    },
  }
}

const watching = new WeakSet<Oracle>()

/** Begins to listen at every engine made from now on, and at those there are. Once is enough for all files of a process. */
export function watchEngines(oracle: Oracle): void {
  if (watching.has(oracle)) return
  watching.add(oracle)
  const { accept, deliver, listen } = Engine.prototype
  Engine.prototype.accept = function (connection: Connection) {
    const link = oracle.link()
    const other = this.role === 'client' ? 'server' : 'client'
    const tapped = tapConnection(connection, ({ way, text }) => {
      if (way === 'out') oracle.note(this.role, text, link)
      else if (oracle.trustPeers) oracle.note(other, text, link)
      else link.see(other, text)
    })
    return accept.call(this, tapped)
  }
  const sessions = new WeakMap<Engine, Map<string, Link>>()
  const linkOf = (engine: Engine, caller: Caller): Link => {
    const id = caller.header?.('mcp-session-id')
    return (id === undefined ? undefined : sessions.get(engine)?.get(id)) ?? oracle.link()
  }
  Engine.prototype.deliver = function (text, caller, reply) {
    const link = linkOf(this, caller)
    link.see('client', text)
    deliver.call(
      this,
      text,
      caller,
      tapLane(oracle, reply, link, id => remember(sessions, this, id, link)),
    )
  }
  Engine.prototype.listen = function (caller, lane) {
    return listen.call(
      this,
      caller,
      tapLane(oracle, lane, linkOf(this, caller), () => {}),
    )
  }
}

function remember(sessions: WeakMap<Engine, Map<string, Link>>, engine: Engine, id: string, link: Link): void {
  const table = sessions.get(engine) ?? new Map()
  sessions.set(engine, table.set(id, link))
}

/** The lane itself, because lanes are compared by who they are. */
function tapLane(oracle: Oracle, lane: Lane, link: Link, opened: (session: string) => void): Lane {
  const send = lane.send.bind(lane)
  lane.send = (frame, hints) => {
    oracle.note('server', frame, link)
    const session = hints?.headers?.['mcp-session-id']
    if (session !== undefined) opened(session)
    send(frame, hints)
  }
  return lane
}
