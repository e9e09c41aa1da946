/** The features of a server without the reliability features: what `src/server/features.ts` is replaced by in the variant that they are measured against. */
import { addToContext } from '../../src/engine/context.ts'
import type { ServerFeature } from '../../src/engine/server-feature.ts'
import { authorizationFeature } from '../../src/features/mcp/authorization/server.ts'
import { cancellationFeature } from '../../src/features/mcp/cancellation/receiver.ts'
import { completionFeature } from '../../src/features/mcp/completion/server.ts'
import { elicitationFeature } from '../../src/features/mcp/elicitation/server.ts'
import { inputRequiredFeature } from '../../src/features/mcp/input-required/server.ts'
import { lifecycleFeature } from '../../src/features/mcp/lifecycle/server.ts'
import { loggingFeature } from '../../src/features/mcp/logging/server.ts'
import { progressFeature } from '../../src/features/mcp/progress/server.ts'
import { promptsFeature } from '../../src/features/mcp/prompts/server.ts'
import { resourcesFeature } from '../../src/features/mcp/resources/server.ts'
import { rootsFeature } from '../../src/features/mcp/roots/server.ts'
import { samplingFeature } from '../../src/features/mcp/sampling/server.ts'
import { subscriptionsFeature } from '../../src/features/mcp/subscriptions/server.ts'
import { tasksFeature } from '../../src/features/mcp/tasks/server.ts'
import { toolsFeature } from '../../src/features/mcp/tools/server.ts'
import { ratesFeature } from '../../src/features/reliability/cost/rates.ts'
import type { ServerOptions } from '../../src/server/options.ts'

/** Those of the protocol itself, and the limits of callers, which both variants have. */
export const serverFeatures: readonly ServerFeature<ServerOptions>[] = [
  lifecycleFeature,
  toolsFeature,
  resourcesFeature,
  promptsFeature,
  completionFeature,
  tasksFeature,
  subscriptionsFeature,
  authorizationFeature,
  loggingFeature,
  progressFeature,
  cancellationFeature,
  rootsFeature,
  samplingFeature,
  elicitationFeature,
  inputRequiredFeature,
  ratesFeature,
]

for (const { context } of serverFeatures) if (context !== undefined) addToContext(context)
