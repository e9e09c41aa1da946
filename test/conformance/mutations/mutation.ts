/** What a mutation is: one fault, at one revision, and the scenarios that have to see it. */
import type { ReferenceOptions } from '../../../examples/reference/reference.ts'
import type { RevisionId } from '../../../src/conformance/index.ts'
import type { Fault } from './box.ts'
import type { WebFault } from './web-box.ts'

export interface Mutation {
  readonly id: string
  /** What is broken, as a sentence. */
  readonly broken: string
  readonly revision: RevisionId
  /** Each of them fails, and passes without the mutation. */
  readonly caughtBy: readonly string[]
  readonly fault?: () => Fault
  /** Over HTTP instead of in memory. */
  readonly web?: () => WebFault
  /** Of the server itself. */
  readonly options?: ReferenceOptions
}

type Given = Omit<Mutation, 'id' | 'broken' | 'revision' | 'caughtBy'>

export function at(revision: RevisionId) {
  return (id: string, broken: string, caughtBy: readonly string[], given: (() => Fault) | Given): Mutation => ({
    id,
    broken,
    revision,
    caughtBy,
    ...(typeof given === 'function' ? { fault: given } : given),
  })
}
