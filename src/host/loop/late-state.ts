/** States that calls have left whose results came after they were given up: what was done was done, whoever waited for it. */
import type { StateReport } from '../../features/live/checkpoints/messages.ts'
import { classify } from '../../features/reliability/problem/client.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Sent } from '../state/book.ts'
import { whyOf } from './permit.ts'
import type { LoopAudit, LoopServer, LoopState } from './ports.ts'
import type { StateSet, StateSets } from './state-sets.ts'
import type { ToolEntry } from './toolbox.ts'

export interface LateParts {
  readonly state: LoopState
  readonly stateSets: StateSets
  readonly audit: LoopAudit
  readonly inferenceId: string
  readonly conversation: string
}

/** Takes such a report down where the call would have left it: later calls rest on it, unless one was sent since. */
export function lateState(
  { state, stateSets, audit, inferenceId, conversation }: LateParts,
  server: LoopServer,
  entry: ToolEntry,
  set: StateSet,
  sent: Sent,
): (report: StateReport) => void {
  return report => {
    const name = stateSets.placed(server, entry, set, report)
    const detail = clip(entry.tool)
    const about = { server: server.name, featureSet: name, inferenceId, conversation, kind: 'state', detail }
    state.record(server.name, name, report, name === set.name ? sent : undefined).then(
      () => audit.note({ ...about, outcome: 'success', rule: 'the result came after its call was given up' }),
      error => audit.note({ ...about, outcome: 'failure', why: whyOf(classify(error), 'state') }),
    )
  }
}
