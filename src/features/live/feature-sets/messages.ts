/**
 * Feature sets on the wire (MCP Live 0.2 §5, §6): what a server declares, what a host selects, how both change, and the numbers of
 * refusals. `featureSets/update` is a notification that names differences; later hosts send it as a request that grants capabilities,
 * and get a receipt.
 */

import { type Problem, problem } from '../../../core/problem.ts'
import { NS, notification, officialIds, request, sessionIds } from '../../../engine/method.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { anything, array, dictionary, object, optional, string } from '../../../jsonrpc/shape.ts'
import { type ScopeLists, scopeListsShape } from '../scopes/messages.ts'

/** The name under `experimental` on wires with a handshake. */
export const mcplName = 'mcpl'
/** The extension on wires without one, and the key in `_meta` of what belongs to MCP Live. */
export const liveExtension = `${NS}/live`
/** The version of MCP Live that this side announces. */
export const liveVersion = '0.2'

/** What a host declares with each request that belongs to MCP Live, on wires where requests do that. */
export const speakingLive = { extensions: { [liveExtension]: { version: liveVersion } } }

/** A feature set as it is declared. */
export interface FeatureSetFacts {
  readonly description: string
  readonly uses: readonly string[]
  readonly scoped?: boolean
  readonly rollback?: boolean
  readonly hostState?: boolean
}

/** The values of `uses` that a capability stands behind; others are kept and mean nothing. */
export const liveUses = [
  'pushEvents',
  'contextHooks.beforeInference',
  'contextHooks.afterInference',
  'inferenceRequest',
  'channels.register',
  'channels.incoming',
  'channels.publish',
  'channels.lifecycle',
  'channels.streaming',
  'channels.typing',
  'channels.acknowledge',
  'tools',
] as const
/** Something that a declared set may do. */
export type LiveUse = (typeof liveUses)[number]

/** What a server says of itself under `experimental.mcpl`. */
export interface WireServerLive {
  readonly version: string
  readonly pushEvents?: boolean
  readonly contextHooks?: { readonly beforeInference?: boolean; readonly afterInference?: { readonly blocking: boolean } }
  readonly inferenceRequest?: { readonly streaming: boolean }
  readonly modelInfo?: boolean
  readonly channels?: boolean
  /** By name; older cores have an array of declarations with a `name`. */
  readonly featureSets: Readonly<Record<string, FeatureSetFacts>> | readonly (FeatureSetFacts & { readonly name: string })[]
}

/** What a host selects: in its `experimental.mcpl`, by `featureSets/update`, or as the policy of a stateless request. */
export interface WireSelection {
  readonly enabled?: readonly string[] | undefined
  readonly disabled?: readonly string[] | undefined
  readonly scopes?: Readonly<Record<string, ScopeLists>> | undefined
  /** Hosts from 0.5 on: the paths that are granted. Present: `enabled` is all there is, not a difference. */
  readonly effectiveCapabilities?: readonly string[] | undefined
  readonly deniedCapabilities?: readonly string[] | undefined
}

/** What a server of ours answers to a selection that came as a request. */
export interface Receipt {
  readonly accepted: boolean
  readonly mode?: string
  readonly unavailableFeatures?: readonly {
    readonly featureSet: string
    readonly missingCapabilities: readonly string[]
    readonly effect: string
  }[]
  readonly notes?: readonly string[]
  readonly fallback?: string
}

/** A selection, as it comes on the wire. */
export const selectionShape = object({
  enabled: optional(array(string)),
  disabled: optional(array(string)),
  scopes: optional(dictionary(scopeListsShape)),
  effectiveCapabilities: optional(array(string)),
  deniedCapabilities: optional(array(string)),
})

const update = { name: 'featureSets/update', to: 'server', in: officialIds, params: selectionShape } as const

/** Tells a server which feature sets are selected. */
export const updateSets = notification(update)
/** The same as a request, which the server answers. */
export const updateSetsByRequest = request<Receipt>()({ ...update, declares: speakingLive })

/** The feature sets of a server have changed. */
export const setsChanged = notification({
  name: 'featureSets/changed',
  to: 'client',
  in: sessionIds,
  // An object by name, or an array: whoever reads it knows both.
  params: object({ added: optional(anything), removed: optional(array(string)) }),
})

/** Hosts from 0.5 on read declarations anew by a request. */
export const readLiveManifest = request<Readonly<Record<string, unknown>>>()({
  name: 'mcpl/manifest',
  to: 'server',
  in: officialIds,
  params: object({}),
  declares: speakingLive,
})

/** The declarations of a server have changed; the host reads them anew. */
export const manifestChanged = notification({
  name: 'mcpl/manifestChanged',
  to: 'client',
  in: sessionIds,
  params: object({ revision: optional(string) }),
})

/** The numbers of MCP Live. Stateless wires keep that range for others: there they stand beside it. */
export const liveErrors = {
  'feature-set-disabled': { default: -32001, '2026-07-28': -31001, 'draft-2026-v1': -31001 },
  'policy-pending': { default: -32002, '2026-07-28': -31002, 'draft-2026-v1': -31002 },
  'feature-set-unknown': { default: -32003, '2026-07-28': -31003, 'draft-2026-v1': -31003 },
  'checkpoint-unknown': { default: -32005, '2026-07-28': -31005, 'draft-2026-v1': -31005 },
  'channel-refused': { default: -32024, '2026-07-28': -31024, 'draft-2026-v1': -31024 },
} as const
type LiveErrorKind = keyof typeof liveErrors

/** What each of these says, in the words of MCP Live, appendix A (of channels: 0.4). */
export const liveErrorTexts = {
  'feature-set-disabled': 'Feature set not enabled',
  'policy-pending': 'No selection of feature sets has arrived yet',
  'feature-set-unknown': 'Unknown feature set',
  'checkpoint-unknown': 'Checkpoint not found',
  'channel-refused': 'Channel open failed',
} as const satisfies Record<LiveErrorKind, string>

/** A refusal of a host, told by what it says beside the number: other libraries use the same ones for something else. */
export function liveRefusalOf(error: unknown): LiveErrorKind | undefined {
  if (!(error instanceof McpError) || !isRecord(error.data)) return undefined
  if (typeof error.data['featureSet'] !== 'string') return undefined
  if (error.code === liveErrors['feature-set-disabled'].default) return 'feature-set-disabled'
  return error.code === liveErrors['feature-set-unknown'].default ? 'feature-set-unknown' : undefined
}

/** What an author is told when a host, or nobody, takes what a set wants to do. */
export function notEnabled(featureSet: string, canEnable?: unknown): Problem {
  const fix =
    canEnable === false
      ? `The host's policy does not allow "${featureSet}"; change it there`
      : `Enable "${featureSet}" for this server in the host`
  return problem('FEATURE_DISABLED', `The feature set "${featureSet}" is not enabled`, {
    suggestion: fix,
    actor: 'user',
    details: { featureSet },
  })
}
