/** Scenarios for servers: the base protocol at every revision, on every carrier. */
import type { Scenario } from '../scenario.ts'
import { elicitationScenarios, samplingScenarios } from './asking.ts'
import { changeScenarios } from './changes.ts'
import { dialectScenarios } from './dialect.ts'
import { discoveryScenarios } from './discovery.ts'
import { batchScenarios, envelopeScenarios } from './envelopes.ts'
import { httpScenarios } from './http.ts'
import { statelessHttpScenarios } from './http-stateless.ts'
import { lifecycleScenarios } from './lifecycle.ts'
import { cachingScenarios, listedScenarios } from './lists.ts'
import { pairScenarios, stdioScenarios, webSocketScenarios } from './pipes.ts'
import { completionScenarios, promptScenarios } from './prompts.ts'
import { resourceScenarios } from './resources.ts'
import { roundScenarios } from './rounds.ts'
import { taskExtensionScenarios, taskScenarios } from './tasks.ts'
import { toolScenarios } from './tools.ts'
import { cancellationScenarios, loggingScenarios, progressScenarios } from './work.ts'

export const baseScenarios: readonly Scenario[] = [
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
