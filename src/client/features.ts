/**
 * The list of client features, and the only file that names them all. Features are notified in this order; of those that wrap
 * tool calls, a later one wraps the earlier ones.
 */
import type { ClientFeature } from '../engine/client-feature.ts'
import { cachingClient } from '../features/mcp/caching/client.ts'
import { cancellationClient } from '../features/mcp/cancellation/receiver.ts'
import { completionClient } from '../features/mcp/completion/client.ts'
import { elicitationClient } from '../features/mcp/elicitation/client.ts'
import { inputRequiredClient } from '../features/mcp/input-required/client.ts'
import { lifecycleClient } from '../features/mcp/lifecycle/client.ts'
import { loggingClient } from '../features/mcp/logging/client.ts'
import { progressClient } from '../features/mcp/progress/receiver.ts'
import { promptsClient } from '../features/mcp/prompts/client.ts'
import { resourcesClient } from '../features/mcp/resources/client.ts'
import { rootsClient } from '../features/mcp/roots/client.ts'
import { samplingClient } from '../features/mcp/sampling/client.ts'
import { subscriptionsClient } from '../features/mcp/subscriptions/client.ts'
import { tasksClient } from '../features/mcp/tasks/client.ts'
import { toolsClient } from '../features/mcp/tools/client.ts'
import { confirmationClient } from '../features/reliability/confirmation/client.ts'
import { costClient } from '../features/reliability/cost/client.ts'
import { referencesClient } from '../features/reliability/data-references/client.ts'
import { eventsClient } from '../features/reliability/events/client.ts'
import { idempotencyClient } from '../features/reliability/idempotency/client.ts'
import { intentClient } from '../features/reliability/intent/client.ts'
import { manifestClient } from '../features/reliability/manifest/client.ts'
import { mediaClient } from '../features/reliability/media/client.ts'
import { permissionsClient } from '../features/reliability/permissions/client.ts'
import { problemClient } from '../features/reliability/problem/client.ts'
import { provenanceClient } from '../features/reliability/provenance/client.ts'
import { recommendationsClient } from '../features/reliability/recommendations/client.ts'
import { stateClient } from '../features/reliability/session-state/client.ts'
import { streamingClient } from '../features/reliability/streaming/client.ts'
import { transactionsClient } from '../features/reliability/transactions/client.ts'
import type { ConnectOptions } from './api.ts'

/** A feature as `connect` installs it. */
export type ConnectFeature = Pick<ClientFeature<object, unknown, ConnectOptions>, 'name' | 'provides' | 'options' | 'setup'>

/** Features that answer questions of the server; `relay` replaces them. */
const answering: readonly ConnectFeature[] = [elicitationClient, samplingClient, rootsClient]

/** Features of every client. */
const common: readonly ConnectFeature[] = [
  confirmationClient,
  costClient,
  intentClient,
  permissionsClient,
  cachingClient,
  inputRequiredClient,
  subscriptionsClient,
  eventsClient,
  tasksClient,
  toolsClient,
  promptsClient,
  resourcesClient,
  completionClient,
  lifecycleClient,
  loggingClient,
  progressClient,
  cancellationClient,
  problemClient,
  idempotencyClient,
  transactionsClient,
  stateClient,
  manifestClient,
  recommendationsClient,
  provenanceClient,
  mediaClient,
  streamingClient,
  referencesClient,
]

/** The default features. Their option names are also used to check the options of `connect`. */
export const clientFeatures: readonly ConnectFeature[] = [...answering, ...common]

/** The features of one client. Relaying and MCP Live are loaded only where their options are given. */
export async function featuresFor({ relay, live }: ConnectOptions): Promise<readonly ConnectFeature[]> {
  const asked = relay === undefined ? answering : [(await import('./relaying.ts')).relayingClient as ConnectFeature]
  const lively = live === undefined ? [] : [(await import('../features/live/client.ts')).liveClient as ConnectFeature]
  return [...asked, ...common, ...lively]
}
