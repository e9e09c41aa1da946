/** All scenarios for servers, by theme and in the order of reports. */
import { authScenarios } from './auth/index.ts'
import { elicitationScenarios, samplingScenarios } from './base/asking.ts'
import { changeScenarios } from './base/changes.ts'
import { dialectScenarios } from './base/dialect.ts'
import { discoveryScenarios } from './base/discovery.ts'
import { batchScenarios, envelopeScenarios } from './base/envelopes.ts'
import { httpScenarios, statelessHttpScenarios } from './base/http.ts'
import { lifecycleScenarios } from './base/lifecycle.ts'
import { cachingScenarios, listedScenarios } from './base/lists.ts'
import { pairScenarios, stdioScenarios, webSocketScenarios } from './base/pipes.ts'
import { completionScenarios, promptScenarios } from './base/prompts.ts'
import { resourceScenarios } from './base/resources.ts'
import { roundScenarios } from './base/rounds.ts'
import { taskExtensionScenarios, taskScenarios } from './base/tasks.ts'
import { toolScenarios } from './base/tools.ts'
import { cancellationScenarios, loggingScenarios, progressScenarios } from './base/work.ts'
import { confirmation } from './extensions/confirmation.ts'
import { media, provenance, references } from './extensions/content.ts'
import { events } from './extensions/events.ts'
import { idempotency, transactions } from './extensions/idempotency.ts'
import { degradation, manifest, recommendations } from './extensions/manifest.ts'
import { state, streamings } from './extensions/ongoing.ts'
import { permissions, principals } from './extensions/permissions.ts'
import { cost, intent, problems } from './extensions/terms.ts'
import { actScenarios, listenScenarios } from './live/acts.ts'
import { setScenarios, stateScenarios } from './live/sets.ts'
import type { Scenario } from './scenario.ts'

/** Scenarios for servers: the base protocol at every revision, on every carrier. */
const baseScenarios: readonly Scenario[] = [
  ...lifecycleScenarios,
  ...discoveryScenarios,
  ...envelopeScenarios,
  ...batchScenarios,
  ...listedScenarios,
  ...toolScenarios,
  ...resourceScenarios,
  ...promptScenarios,
  ...completionScenarios,
  ...progressScenarios,
  ...cancellationScenarios,
  ...loggingScenarios,
  ...changeScenarios,
  ...elicitationScenarios,
  ...samplingScenarios,
  ...roundScenarios,
  ...cachingScenarios,
  ...taskScenarios,
  ...taskExtensionScenarios,
  ...httpScenarios,
  ...statelessHttpScenarios,
  ...stdioScenarios,
  ...pairScenarios,
  ...webSocketScenarios,
  ...dialectScenarios,
]

/** Scenarios of the extensions: every statement that a server shows to the outside. */
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

/** Scenarios of MCP Live for servers. */
export const liveScenarios: readonly Scenario[] = [...setScenarios, ...stateScenarios, ...actScenarios, ...listenScenarios]

/** All scenarios for servers. */
export const scenarios: readonly Scenario[] = [...baseScenarios, ...authScenarios, ...extensionScenarios, ...liveScenarios]
