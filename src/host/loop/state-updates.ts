/**
 * States that servers report by themselves (`state/update`) while they are called: undoing the turn sets them back, too. Such a report
 * names no call. It counts for those that run at the server then; where these are of several turns, nobody knows whose it is.
 */

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

interface Running {
  readonly turn: string
  readonly sets: Map<string, StateUpdate>
  /** Reports that are being written. */
  readonly open: Set<Promise<void>>
}

export function createStateUpdates(): StateUpdates {
  const running = new Map<string, Set<Running>>()
  return {
    begin: (server, turn) => {
      const mine: Running = { turn, sets: new Map(), open: new Set() }
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
