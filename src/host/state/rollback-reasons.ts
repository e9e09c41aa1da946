/** Why a checkpoint cannot be stored or rolled back to. */
import type { Problem } from '../../core/problem.ts'
import { quoted, type Why, why } from '../../core/suggestion.ts'
import { clip } from '../../jsonrpc/limits.ts'

/** Why a checkpoint without a usable name is not kept. */
export function unnamedCheckpoint(): Why {
  const message = 'The checkpoint was not stored, because its name is empty or longer than 512 characters'
  return why('CHECKPOINT_INVALID', 'state.checkpoint', message, 'Correct the server so that it uses short checkpoint names')
}

/** Why a rollback fails: there is no such checkpoint, or its state is not kept. */
export function unknownCheckpoint(checkpoint: string): Why {
  const message = `The checkpoint ${quoted(checkpoint)} does not exist, or its state is no longer stored`
  return why('CHECKPOINT_NOT_FOUND', 'state.retention', message, 'Use a checkpoint from the tree of the feature set')
}

/** Why a rollback fails: the feature set does not declare it. */
export function notOffered(featureSet: string): Why {
  const message = `The feature set ${quoted(featureSet)} does not declare rollback`
  const fix = 'Undo the changes with its tools, or use a server that declares rollback for it'
  return why('ROLLBACK_NOT_OFFERED', 'state.rollback', message, fix)
}

/** Why a rollback fails: the server refused it. */
export function rollbackRefused(checkpoint: string, reason: string | undefined): Why {
  const message = `The server refused the rollback to ${quoted(checkpoint)}${reason === undefined ? '' : `: ${quoted(reason)}`}`
  return why('ROLLBACK_REFUSED', 'state.rollback', message, 'Nothing has changed. Use another checkpoint, or retry later')
}

/** Why a rollback failed without a clear answer: a timeout or an error. */
export function failedRollback(checkpoint: string, { code, message }: Problem): Why {
  const said = code === 'OPERATION_TIMEOUT' ? 'ROLLBACK_TIMEOUT' : 'ROLLBACK_FAILED'
  const fix = 'The state is as before the rollback. Retry later'
  return why(said, 'state.rollback', `The rollback to ${quoted(checkpoint)} failed: ${quoted(message)}`, fix)
}

/** Why a rollback to before the first checkpoint fails: the server keeps the state itself. */
export function noEarlierState(server: string, featureSet: string): Why {
  const [set, of] = [quoted(featureSet), clip(server)]
  const message = `${set} had no checkpoint before, and ${of} stores its state itself, so it can roll back only to checkpoints`
  return why('NO_EARLIER_STATE', 'state.rollback', message, `Restore ${set} of ${of} manually`)
}
