/**
 * Feature sets on the wire (MCP Live 0.2 §5, §6): declarations, selections, changes, and error codes. `featureSets/update` is a
 * notification with differences; later hosts send it as a request that also grants capabilities, and get a receipt.
 */

import { type Problem, problem } from '../../../core/problem.ts'
import { NS, notification, officialIds, request, sessionRevisionIds } from '../../../engine/method.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { anything, array, dictionary, object, optional, string } from '../../../jsonrpc/shape.ts'
import type { Capabilities, Revision } from '../../../revisions/index.ts'
import { type ScopeLists, scopeListsShape } from '../scopes/messages.ts'

/** The name under `experimental` on session wires. */
export const mcplName = 'mcpl'
/** The extension name on stateless wires, and the key in `_meta`. */
export const liveExtension = `${NS}/live`
/** The version of MCP Live that Vivarium announces. */
export const liveVersion = '0.2'

/** What an end declares of MCP Live, as capabilities: under `experimental`, on stateless wires under `extensions` too. */
export function asCapabilities({ extensionsIn, era }: Revision, live: Params): Capabilities {
  if (extensionsIn === undefined) return {}
  const experimental = { [mcplName]: live }
  return era === 'session' ? { experimental } : { experimental, extensions: { [liveExtension]: live } }
}

/** What a host declares with each live request on stateless wires. */
export const liveDeclaration = { extensions: { [liveExtension]: { version: liveVersion } } }

/** A feature set as declared on the wire. */
export interface FeatureSetFacts {
  /** What the set does, for the person who decides whether to enable it. */
  readonly description: string
  /** Capability paths that the set uses. */
  readonly uses: readonly string[]
  /** Its tools ask for scopes. */
  readonly scoped?: boolean
  /** It can be rolled back to checkpoints. */
  readonly rollback?: boolean
  /** The host keeps its state. */
  readonly hostState?: boolean
}

/** The known values of `uses`; others are kept but have no effect. */
export type LiveUse =
  | 'pushEvents'
  | 'contextHooks.beforeInference'
  | 'contextHooks.afterInference'
  | 'inferenceRequest'
  | 'channels.register'
  | 'channels.incoming'
  | 'channels.publish'
  | 'channels.lifecycle'
  | 'channels.streaming'
  | 'channels.typing'
  | 'channels.acknowledge'
  | 'tools'

/** What a server announces under `experimental.mcpl`. */
export interface WireServerLive {
  readonly version: string
  readonly pushEvents?: boolean
  readonly contextHooks?: { readonly beforeInference?: boolean; readonly afterInference?: { readonly blocking: boolean } }
  readonly inferenceRequest?: { readonly streaming: boolean }
  readonly modelInfo?: boolean
  readonly channels?: boolean
  /** By name; older cores use an array of declarations with a `name`. */
  readonly featureSets: Readonly<Record<string, FeatureSetFacts>> | readonly (FeatureSetFacts & { readonly name: string })[]
}

/** A selection: in the host's `experimental.mcpl`, in `featureSets/update`, or as the policy of a stateless request. */
export interface WireSelection {
  readonly enabled?: readonly string[] | undefined
  readonly disabled?: readonly string[] | undefined
  readonly scopes?: Readonly<Record<string, ScopeLists>> | undefined
  /** Hosts of 0.5 and later: the granted paths. If present, `enabled` is the whole selection, not a difference. */
  readonly effectiveCapabilities?: readonly string[] | undefined
  readonly deniedCapabilities?: readonly string[] | undefined
}

/** The answer to a selection that was sent as a request. */
export interface Receipt {
  readonly accepted: boolean
  readonly mode?: string
  /** Selected sets that do not work, and what they miss. */
  readonly unavailableFeatures?: readonly {
    readonly featureSet: string
    readonly missingCapabilities: readonly string[]
    readonly effect: string
  }[]
  readonly notes?: readonly string[]
  /** What the server does if it does not accept. */
  readonly fallback?: string
}

/** The shape of a selection. */
export const selectionShape = object({
  enabled: optional(array(string)),
  disabled: optional(array(string)),
  scopes: optional(dictionary(scopeListsShape)),
  effectiveCapabilities: optional(array(string)),
  deniedCapabilities: optional(array(string)),
})

const update = { name: 'featureSets/update', to: 'server', in: officialIds, params: selectionShape } as const

/** Tells a server the selection. */
export const updateSets = notification(update)
/** The request form, which the server answers with a receipt. */
export const updateSetsByRequest = request<Receipt>()({ ...update, declares: liveDeclaration })

/** A server's feature sets have changed. */
export const setsChanged = notification({
  name: 'featureSets/changed',
  to: 'client',
  in: sessionRevisionIds,
  // An object by name or an array; both are read.
  params: object({ added: optional(anything), removed: optional(array(string)) }),
})

/** Reads a server's declarations again (0.5). */
export const readLiveManifest = request<Readonly<Record<string, unknown>>>()({
  name: 'mcpl/manifest',
  to: 'server',
  in: officialIds,
  params: object({}),
  declares: liveDeclaration,
})

/** A server's declarations have changed (0.5). */
export const manifestChanged = notification({
  name: 'mcpl/manifestChanged',
  to: 'client',
  in: sessionRevisionIds,
  params: object({ revision: optional(string) }),
})

/** Error codes of MCP Live. Stateless revisions reserve that range, so other numbers are used there. */
export const liveErrors = {
  'feature-set-disabled': { default: -32001, '2026-07-28': -31001, 'draft-2026-v1': -31001 },
  'policy-pending': { default: -32002, '2026-07-28': -31002, 'draft-2026-v1': -31002 },
  'feature-set-unknown': { default: -32003, '2026-07-28': -31003, 'draft-2026-v1': -31003 },
  'checkpoint-unknown': { default: -32005, '2026-07-28': -31005, 'draft-2026-v1': -31005 },
  'channel-refused': { default: -32024, '2026-07-28': -31024, 'draft-2026-v1': -31024 },
} as const
type LiveErrorKind = keyof typeof liveErrors

/** The messages of errors, as in MCP Live appendix A (channels: 0.4). */
const errorTexts = {
  'feature-set-disabled': 'Feature set not enabled',
  'feature-set-unknown': 'Unknown feature set',
  'checkpoint-unknown': 'Checkpoint not found',
  'channel-refused': 'Channel open failed',
} satisfies Partial<Record<LiveErrorKind, string>>

/** An error of MCP Live, with the message that belongs to its number; `detail` follows that. */
export function liveError(kind: keyof typeof errorTexts, data: Params, detail?: string): McpError {
  return new McpError(kind, detail === undefined ? errorTexts[kind] : `${errorTexts[kind]}: ${detail}`, { data })
}

/** Recognises a host's refusal by its data too, because other libraries use the same numbers for other errors. */
export function liveRefusalOf(error: unknown): LiveErrorKind | undefined {
  if (!(error instanceof McpError) || !isRecord(error.data)) return undefined
  if (typeof error.data['featureSet'] !== 'string') return undefined
  if (error.code === liveErrors['feature-set-disabled'].default) return 'feature-set-disabled'
  return error.code === liveErrors['feature-set-unknown'].default ? 'feature-set-unknown' : undefined
}

/** The error that an author gets when a host has not enabled the set. */
export function notEnabled(featureSet: string, canEnable?: unknown): Problem {
  const fix =
    canEnable === false
      ? `The policy of the host does not allow "${featureSet}". Change the policy`
      : `Enable "${featureSet}" for this server in the host`
  return problem('FEATURE_DISABLED', `The feature set "${featureSet}" is not enabled`, {
    suggestion: fix,
    actor: 'user',
    details: { featureSet },
  })
}
