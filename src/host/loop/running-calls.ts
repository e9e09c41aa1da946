/**
 * Which questions the user said no to while a call ran: such a call ends well and has done nothing, which only the one who said no
 * can know. On most wires a question does not name its call, so it counts where the server had one alone.
 */
import { clip } from '../../jsonrpc/limits.ts'

export interface DeclinedQuestions {
  /** A call begins. What is returned ends it, and gives the question to which alone the answer was no. */
  begin(server: string): () => string | undefined
  /** A question of a server was answered. */
  answered(server: string, question: string, yes: boolean): void
}

interface AskingCall {
  /** Another call of the server ran at the same time. */
  doubtful: boolean
  agreed: boolean
  refused: string | undefined
}

export function createDeclinedQuestions(): DeclinedQuestions {
  const running = new Map<string, Set<AskingCall>>()
  return {
    begin: server => {
      const mine: AskingCall = { doubtful: false, agreed: false, refused: undefined }
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

/** How a call left the state of a set, by what its server reported beside the result. */
export interface StateUpdate {
  readonly featureSet: string
  /** The checkpoint before the first report; absent where there was none. */
  readonly before?: string
  readonly after: string
  /** Calls of other turns ran at the server, too. */
  readonly shared?: true
}

export interface StateUpdates {
  /** A call begins. What is returned ends it, and gives what was reported until then: of each set once. */
  begin(server: string, turn: string): () => Promise<readonly StateUpdate[]>
  /** A server reports a state. What is returned is called when it is known what that changed; undefined: nothing. */
  reported(server: string): (update: StateUpdate | undefined) => void
}

interface ReportingCall {
  readonly turn: string
  readonly sets: Map<string, StateUpdate>
  /** Reports that are being written. */
  readonly open: Set<Promise<void>>
}

export function createStateUpdates(): StateUpdates {
  const running = new Map<string, Set<ReportingCall>>()
  return {
    begin: (server, turn) => {
      const mine: ReportingCall = { turn, sets: new Map(), open: new Set() }
      const all = running.get(server) ?? new Set()
      running.set(server, all.add(mine))
      return async () => {
        // What came with the result, right before it, may not have been looked at yet.
        await new Promise<void>(resolve => setImmediate(resolve))
        all.delete(mine)
        if (all.size === 0) running.delete(server)
        await Promise.all(mine.open)
        return [...mine.sets.values()]
      }
    },
    reported: server => {
      const calls = [...(running.get(server) ?? [])]
      const shared = new Set(calls.map(({ turn }) => turn)).size > 1
      const { promise, resolve } = Promise.withResolvers<void>()
      for (const { open } of calls) open.add(promise)
      return update => {
        for (const { sets, open } of calls) {
          if (update !== undefined) sets.set(update.featureSet, joined(sets.get(update.featureSet), update, shared))
          open.delete(promise)
        }
        resolve()
      }
    },
  }
}

/** Several reports on one state are one change. */
function joined(first: StateUpdate | undefined, { featureSet, after, ...last }: StateUpdate, shared: boolean): StateUpdate {
  const { before } = first ?? last
  return {
    featureSet,
    ...(before !== undefined && { before }),
    after,
    ...((shared || first?.shared === true) && { shared: true }),
  }
}
