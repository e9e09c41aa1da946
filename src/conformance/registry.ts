/** All scenarios for servers. */
import { authScenarios } from './auth/index.ts'
import { baseScenarios } from './base/index.ts'
import { extensionScenarios } from './extensions/index.ts'
import { liveScenarios } from './live/index.ts'
import type { Scenario } from './scenario.ts'

export const scenarios: readonly Scenario[] = [...baseScenarios, ...authScenarios, ...extensionScenarios, ...liveScenarios]
