/**
 * The features of a server: the only place that names them all. Their order is that of their layers within a stage, and of their set-up:
 * whoever extends another stands after it.
 */
import { addToContext } from '../engine/context.ts'
import type { ServerFeature } from '../engine/server-feature.ts'
import { liveFeature } from '../features/live/server.ts'
import { authorizationFeature } from '../features/mcp/authorization/server.ts'
import { cancellationFeature } from '../features/mcp/cancellation/receiver.ts'
import { completionFeature } from '../features/mcp/completion/server.ts'
import { elicitationFeature } from '../features/mcp/elicitation/server.ts'
import { inputRequiredFeature } from '../features/mcp/input-required/server.ts'
import { lifecycleFeature } from '../features/mcp/lifecycle/server.ts'
import { loggingFeature } from '../features/mcp/logging/server.ts'
import { progressFeature } from '../features/mcp/progress/server.ts'
import { promptsFeature } from '../features/mcp/prompts/server.ts'
import { resourcesFeature } from '../features/mcp/resources/server.ts'
import { rootsFeature } from '../features/mcp/roots/server.ts'
import { samplingFeature } from '../features/mcp/sampling/server.ts'
import { subscriptionsFeature } from '../features/mcp/subscriptions/server.ts'
import { tasksFeature } from '../features/mcp/tasks/server.ts'
import { toolsFeature } from '../features/mcp/tools/server.ts'
import { confirmationFeature } from '../features/reliability/confirmation/server.ts'
import { ratesFeature } from '../features/reliability/cost/rates.ts'
import { costFeature } from '../features/reliability/cost/server.ts'
import { referencesFeature } from '../features/reliability/data-references/server.ts'
import { davioeFeature } from '../features/reliability/davioe/server.ts'
import { eventsFeature } from '../features/reliability/events/offering.ts'
import { facadeFeature } from '../features/reliability/facade/server.ts'
import { idempotencyFeature } from '../features/reliability/idempotency/server.ts'
import { intentFeature } from '../features/reliability/intent/server.ts'
import { manifestFeature } from '../features/reliability/manifest/server.ts'
import { mediaFeature } from '../features/reliability/media/server.ts'
import { permissionsFeature } from '../features/reliability/permissions/server.ts'
import { problemFeature } from '../features/reliability/problem/server.ts'
import { provenanceFeature } from '../features/reliability/provenance/server.ts'
import { recommendationsFeature } from '../features/reliability/recommendations/server.ts'
import { stateFeature } from '../features/reliability/session-state/server.ts'
import { streamingFeature } from '../features/reliability/streaming/server.ts'
import { transactionsFeature } from '../features/reliability/transactions/server.ts'
import type { ServerOptions } from './options.ts'

/** All of them. */
export const serverFeatures: readonly ServerFeature<ServerOptions>[] = [
  lifecycleFeature,
  toolsFeature,
  resourcesFeature,
  promptsFeature,
  completionFeature,
  tasksFeature,
  subscriptionsFeature,
  authorizationFeature,
  eventsFeature,
  loggingFeature,
  progressFeature,
  cancellationFeature,
  rootsFeature,
  samplingFeature,
  elicitationFeature,
  inputRequiredFeature,
  davioeFeature,
  facadeFeature,
  problemFeature,
  streamingFeature,
  idempotencyFeature,
  permissionsFeature,
  confirmationFeature,
  transactionsFeature,
  stateFeature,
  costFeature,
  intentFeature,
  // Stamped last: what was judged is what is stamped.
  provenanceFeature,
  mediaFeature,
  referencesFeature,
  ratesFeature,
  recommendationsFeature,
  manifestFeature,
  liveFeature,
]

for (const { context } of serverFeatures) if (context !== undefined) addToContext(context)
