/** All mutations: each breaks one behaviour of the reference server. */
import { baseMutations, webMutations } from './base.ts'
import { describedMutations } from './described.ts'
import { liveMutations } from './live.ts'
import type { Mutation } from './mutation.ts'
import { reliabilityMutations } from './reliability.ts'

export const mutations: readonly Mutation[] = [
  ...baseMutations,
  ...webMutations,
  ...describedMutations,
  ...reliabilityMutations,
  ...liveMutations,
]
