/**
 * Which questions the user said no to while a call ran: such a call ends well and has done nothing, which only the one who said no
 * can know. On most wires a question does not name its call, so it counts where the server had one alone.
 */
import { clip } from '../../jsonrpc/limits.ts'

export interface Refusals {
  /** A call begins. What is returned ends it, and gives the question to which alone the answer was no. */
  begin(server: string): () => string | undefined
  /** A question of a server was answered. */
  answered(server: string, question: string, yes: boolean): void
}

interface Running {
  /** Another call of the server ran at the same time. */
  doubtful: boolean
  agreed: boolean
  refused: string | undefined
}

export function createRefusals(): Refusals {
  const running = new Map<string, Set<Running>>()
  return {
    begin: server => {
      const mine: Running = { doubtful: false, agreed: false, refused: undefined }
      const all = running.get(server) ?? new Set()
      running.set(server, all.add(mine))
      if (all.size > 1) for (const each of all) each.doubtful = true
      return () => {
        all.delete(mine)
        if (all.size === 0) running.delete(server)
        return mine.doubtful || mine.agreed ? undefined : mine.refused
      }
    },
    answered: (server, question, yes) => {
      for (const call of running.get(server) ?? []) {
        if (yes) call.agreed = true
        else call.refused = clip(question)
      }
    },
  }
}
