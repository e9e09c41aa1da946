/** What every client can be judged by. */
import type { ClientScenario } from '../scenario.ts'
import { answering } from './answers.ts'
import { asking } from './asking.ts'
import { changing } from './changing.ts'
import { during } from './during.ts'
import { headers } from './headers.ts'
import { listing } from './listing.ts'
import { negotiating } from './negotiating.ts'
import { questioning } from './rounds.ts'
import { running } from './running.ts'
import { streams } from './streams.ts'
import { tasking } from './tasks.ts'
import { using } from './using.ts'

export const baseClientScenarios: readonly ClientScenario[] = [
  ...running,
  ...negotiating,
  ...listing,
  ...answering,
  ...during,
  ...asking,
  ...questioning,
  ...changing,
  ...using,
  ...tasking,
  ...headers,
  ...streams,
]
