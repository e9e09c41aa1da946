/** What is said of checkpoints that are odd, unknown, or cannot be gone back to. */
import { type Problem, problem } from '../../core/problem.ts'
import { quoted, type Why, why } from '../../core/suggestion.ts'
import { clip } from '../../jsonrpc/limits.ts'

export function unnamedCheckpoint(): Why {
  return why(
    'CHECKPOINT_INVALID',
    'state.checkpoint',
    'A checkpoint without a name, or with one of more than 512 characters, cannot be kept',
    'Have the server give its checkpoints short names',
  )
}

export function orphaned(checkpoint: string, parent: string): Why {
  return why(
    'CHECKPOINT_ORPHAN',
    'state.parent',
    `The checkpoint ${quoted(checkpoint)} rests on ${quoted(parent)}, which is not known here`,
    'Have the server report the whole state as data',
  )
}

export function reused(checkpoint: string): Why {
  return why(
    'CHECKPOINT_REUSED',
    'state.checkpoint',
    `The name ${quoted(checkpoint)} stood for another checkpoint before; it stands for the later one now`,
    'Have the server give each checkpoint a name of its own',
  )
}

export function unknownCheckpoint(checkpoint: string): Why {
  return why(
    'CHECKPOINT_NOT_FOUND',
    'state.retention',
    `There is no checkpoint ${quoted(checkpoint)}, or its state is not kept any more`,
    'Choose one that the tree of the feature set shows',
  )
}

export function notOffered(featureSet: string): Why {
  return why(
    'ROLLBACK_NOT_OFFERED',
    'state.rollback',
    `The feature set ${quoted(featureSet)} does not declare rollback`,
    'Undo by a call of its tools, or use a server that declares rollback for it',
  )
}

export function rollbackRefused(checkpoint: string, reason: string | undefined): Why {
  return why(
    'ROLLBACK_REFUSED',
    'state.rollback',
    `The server did not go back to ${quoted(checkpoint)}${reason === undefined ? '' : `: ${quoted(reason)}`}`,
    'Nothing has changed; try another checkpoint, or again later',
  )
}

/** Nobody knows what the server has done: it gave no answer, or an error. */
export function failedRollback(checkpoint: string, { code, message }: Problem): Why {
  return why(
    code === 'OPERATION_TIMEOUT' ? 'ROLLBACK_TIMEOUT' : 'ROLLBACK_FAILED',
    'state.rollback',
    `Going back to ${quoted(checkpoint)} failed: ${quoted(message)}`,
    'The next call carries the state of before; try it again later',
  )
}

export function noEarlierState(server: string, featureSet: string): Why {
  return why(
    'NO_EARLIER_STATE',
    'state.rollback',
    `There was no checkpoint of ${quoted(featureSet)} before, and ${clip(server)} keeps its state itself: it can go back to checkpoints only`,
    `Set ${quoted(featureSet)} of ${clip(server)} back by hand`,
  )
}

export function notKept(checkpoint: string): Problem {
  const { code, message, fix } = unknownCheckpoint(checkpoint)
  return problem(code, message, { suggestion: fix })
}
