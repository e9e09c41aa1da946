/** The table of conversations that clients name by an id: an interface, in memory here. */
import type { Clock } from '../core/clock.ts'
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

/**
 * Idle conversations are swept; a full table first gives up what is idle longest past its time. `ended` hears of each that is over:
 * for all who serve it, or only here.
 */
export function memorySessions(limits: Limits, clock: Clock, ended: (id: string, forAll: boolean) => void): Sessions {
  const table = new Map<string, Conversation>()
  let timer: (() => void) | undefined
  const end = (conversation: Conversation, why: string, forAll = false): void => {
    const id = conversation.session as string
    table.delete(id)
    conversation.end(new Error(why))
    ended(id, forAll)
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
      return conversation
    },
    add: conversation => {
      const owner = conversation.caller.principal?.id
      const crowded = (): boolean => owner !== undefined && countOf(table, owner) >= limits.sessionsPerPrincipal
      if (table.size >= limits.sessions || crowded()) sweep()
      if (table.size >= limits.sessions) throw full(`${limits.sessions} sessions are open`, 'sessions')
      if (crowded()) {
        throw full(`You have ${limits.sessionsPerPrincipal} sessions open`, 'sessionsPerPrincipal')
      }
      conversation.lastSeen = clock.now()
      table.set(conversation.session as string, conversation)
      plan()
    },
    delete: id => {
      const conversation = table.get(id)
      if (conversation !== undefined) end(conversation, 'The session was ended', true)
    },
    all: () => table.values(),
    close: () => {
      timer?.()
      timer = undefined
      for (const conversation of [...table.values()]) end(conversation, 'The server is closing')
    },
  }
}

function countOf(table: ReadonlyMap<string, Conversation>, owner: string): number {
  let count = 0
  for (const conversation of table.values()) if (conversation.caller.principal?.id === owner) count++
  return count
}

function full(what: string, limit: keyof Limits): McpError {
  return new McpError('busy', `${what}, which is the limit (${limit}); end one with DELETE or try again later`, {
    data: { retryAfterMs: 10_000 },
  })
}
