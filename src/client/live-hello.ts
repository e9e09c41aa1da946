/** What a host says of itself before it knows the server. */
import { liveExtension, liveVersion, mcplName } from '../features/live/feature-sets/messages.ts'
import type { Params } from '../jsonrpc/message.ts'
import type { Capabilities, Revision } from '../revisions/index.ts'
import type { LiveHandlers } from './live-handlers.ts'

/** Host and server say it in the same words; the selection proper follows the server's hello. */
export function hostLive({ hello = {} }: LiveHandlers): Params {
  const { enabled = [], disabled = [], scopes } = hello
  return {
    version: liveVersion,
    pushEvents: true,
    contextHooks: { beforeInference: true, afterInference: { blocking: true } },
    inferenceRequest: { streaming: true },
    inferenceLifecycle: true,
    modelInfo: true,
    channels: true,
    featureSets: { enabled, disabled },
    ...(scopes === undefined ? {} : { scopes }),
  }
}

/** Among the experiments, where all wires but the dialect have a place; on stateless ones it is an extension too. */
export function hostCapabilities({ extensionsIn, era }: Revision, handlers: LiveHandlers): Capabilities {
  if (extensionsIn === undefined) return {}
  const host = hostLive(handlers)
  const experimental = { [mcplName]: host }
  return era === 'session' ? { experimental } : { experimental, extensions: { [liveExtension]: host } }
}
