/** Scenarios of MCP Live for servers. */
import type { Scenario } from '../scenario.ts'
import { actScenarios } from './acts.ts'
import { listenScenarios } from './listening.ts'
import { setScenarios } from './sets.ts'
import { stateScenarios } from './state.ts'

export const liveScenarios: readonly Scenario[] = [...setScenarios, ...stateScenarios, ...actScenarios, ...listenScenarios]
