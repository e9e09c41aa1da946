/** Scenarios of the extensions: every statement that a server shows to the outside. */
import type { Scenario } from '../scenario.ts'
import { confirmation } from './confirmation.ts'
import { cost } from './cost.ts'
import { degradation } from './degradation.ts'
import { events } from './events.ts'
import { idempotency } from './idempotency.ts'
import { intent } from './intent.ts'
import { manifest, recommendations } from './manifest.ts'
import { media } from './media.ts'
import { permissions } from './permissions.ts'
import { principals } from './principals.ts'
import { problems } from './problem.ts'
import { provenance } from './provenance.ts'

import { references } from './references.ts'
import { state } from './state.ts'
import { streamings } from './streaming.ts'
import { transactions } from './transactions.ts'

export const extensionScenarios: readonly Scenario[] = [
  ...degradation,
  ...manifest,
  ...intent,
  ...cost,
  ...permissions,
  ...idempotency,
  ...transactions,
  ...confirmation,
  ...provenance,
  ...streamings,
  ...references,
  ...media,
  ...problems,
  ...recommendations,
  ...state,
  ...events,
  ...principals,
]
