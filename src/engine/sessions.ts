/** The table of conversations that clients name by an id: an interface, in memory here. */
import type { Clock } from '../core/clock.ts'
import { accountOf, isAnonymous, Occupancy, shareText } from '../core/occupancy.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { Conversation } from './conversation.ts'
import type { Limits } from './limits.ts'

export interface Sessions {
  /** Another owner's is as unknown as one that never was, and not touched by being asked for. */
  get(id: string, owner: string | undefined): Conversation | undefined
  /** Throws a busy refusal when there is no room. */
  add(conversation: Conversation): void
  delete(id: string): void
  all(): Iterable<Conversation>
  close(): void
}

/** A session of a full table in which nothing was said for so long makes room for a new one, long before its time. */
const unusedMs = 60_000

/** How a session came to its end: for all who serve it; given up here, while others may have it too; or with this process. */
export type SessionEnd = 'for all' | 'given up' | 'closing'

/**
 * Idle conversations are swept; a full table first gives up what is idle past its time, then what gives way to the newcomer. `ended`
 * hears of each that is over.
 */
export function memorySessions(
  limits: Limits,
  clock: Clock,
  ended: (conversation: Conversation, how: SessionEnd) => void,
): Sessions {
  const table = new Map<string, Conversation>()
  const places = new Occupancy(limits.sessions)
  let timer: (() => void) | undefined
  const end = (conversation: Conversation, why: string, how: SessionEnd = 'given up'): void => {
    const id = conversation.session as string
    if (table.delete(id)) places.leave(accountOf(conversation.caller))
    conversation.end(new Error(why))
    ended(conversation, how)
  }
  const sweep = (): void => {
    // Also called out of turn, by a full table: the timer that was set must not go on beside the next one.
    timer?.()
    timer = undefined
    const now = clock.now()
    for (const conversation of table.values()) {
      // Idle is counted from the end of what holds a session open: whoever's stream breaks must have the time to come back.
      if (conversation.busy || conversation.heard) conversation.lastSeen = now
      else if (conversation.lastSeen < now - limits.sessionIdleMs) end(conversation, 'The session was idle for too long')
    }
    plan()
  }
  const plan = (): void => {
    if (timer === undefined && table.size > 0) timer = clock.setTimeout(sweep, Math.max(limits.sessionIdleMs / 10, 1000), true)
  }
  return {
    get: (id, owner) => {
      const conversation = table.get(id)
      if (conversation === undefined || conversation.caller.principal?.id !== owner) return undefined
      conversation.lastSeen = clock.now()
      conversation.spoke = true
      return conversation
    },
    add: conversation => {
      const account = accountOf(conversation.caller)
      const crowded = (): boolean => !isAnonymous(account) && places.of(account) >= limits.sessionsPerPrincipal
      if (places.refusal(account) !== undefined || crowded()) sweep()
      if (crowded()) throw full(`You have ${limits.sessionsPerPrincipal} sessions open`, 'sessionsPerPrincipal')
      if (places.refusal(account) !== undefined) {
        const idle = yielding(table.values(), places, account, clock.now())
        if (idle !== undefined) end(idle, 'The session made room for another one')
      }
      const refusal = places.refusal(account)
      if (refusal === 'share') throw full(shareText(`${limits.sessions} sessions`), 'sessions')
      if (refusal !== undefined) throw full(`${limits.sessions} sessions are open`, 'sessions')
      conversation.lastSeen = clock.now()
      table.set(conversation.session as string, conversation)
      places.enter(account)
      plan()
    },
    delete: id => {
      const conversation = table.get(id)
      if (conversation !== undefined) end(conversation, 'The session was ended', 'for all')
    },
    all: () => table.values(),
    close: () => {
      timer?.()
      timer = undefined
      for (const conversation of [...table.values()]) end(conversation, 'The server is closing', 'closing')
    },
  }
}

/**
 * The session that makes room for a new one of this account: first one that said nothing since its handshake, else one that said
 * nothing for longest; of whoever gives way to it, or one that is not used and is its own or of a stranger who holds no less than a
 * stranger who asks. Never one at work or listened to.
 */
function yielding(all: Iterable<Conversation>, places: Occupancy, account: string, now: number): Conversation | undefined {
  let found: Conversation | undefined
  const mine = isAnonymous(account) ? places.weight(account) : 0
  for (const conversation of all) {
    const { spoke, lastSeen, caller } = conversation
    if (conversation.busy || conversation.heard || (spoke && found !== undefined && found.lastSeen <= lastSeen)) continue
    const from = accountOf(caller)
    const unused = !spoke || lastSeen <= now - unusedMs
    const free = unused && (from === account || (isAnonymous(from) && places.weight(from) >= mine))
    if (!free && !places.yields(from, account)) continue
    // They stand in the order in which they were opened: of those that never spoke the first is the oldest.
    if (!spoke) return conversation
    found = conversation
  }
  return found
}

function full(what: string, limit: keyof Limits): McpError {
  return new McpError('busy', `${what}, which is the limit (${limit}); end one with DELETE or try again later`, {
    data: { retryAfterMs: 10_000 },
  })
}
