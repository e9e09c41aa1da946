/** Checkpoints: after which chunk an operation is to be gone on with, sealed to its owner, its tool and its arguments. */
import { HandleError, type Seal } from '../../../core/handle.ts'
import { type Problem, problem } from '../../../core/problem.ts'

/** Whose call it is, and what was called. */
export interface CheckpointBinding {
  /** The key of the principal; undefined where nobody is known: then whoever has the token is its owner. */
  readonly owner: string | undefined
  readonly fingerprint: string
}

interface Checkpoint {
  readonly id: string
  /** The sequence of the chunk that comes next. */
  readonly next: number
}

/** No operation lasts longer. */
const lifeMs = 86_400_000

export function createCheckpoints(seal: Seal, audience: string, now: () => number) {
  const purpose = ({ owner, fingerprint }: CheckpointBinding) => ({
    kind: 'checkpoint',
    principal: owner,
    audience,
    bound: fingerprint,
  })
  return {
    seal: (bound: CheckpointBinding, { id, next }: Checkpoint): Promise<string> =>
      seal.seal({ ...purpose(bound), expiresAt: now() + lifeMs, data: [id, next] }),
    /** Refuses with one and the same problem, whatever is wrong. */
    open: async (bound: CheckpointBinding, token: string): Promise<Checkpoint> => {
      try {
        const data = await seal.open(token, purpose(bound))
        if (!Array.isArray(data) || typeof data[0] !== 'string' || typeof data[1] !== 'number') throw checkpointNotFound()
        return { id: data[0], next: data[1] }
      } catch (error) {
        throw error instanceof HandleError ? checkpointNotFound() : error
      }
    },
  }
}

export type StreamCheckpoints = ReturnType<typeof createCheckpoints>

export function checkpointNotFound(): Problem {
  return problem('CHECKPOINT_NOT_FOUND', 'There is no such checkpoint, or no longer; nothing was done', {
    suggestion: 'Find out what the call has done before making it again',
  })
}
