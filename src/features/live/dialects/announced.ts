/** What a server says of itself in `experimental.mcpl`, whichever dialect it says it in. */
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Capabilities } from '../../../revisions/index.ts'
import { liveExtension, mcplName } from '../feature-sets/messages.ts'
import type { ContentForm } from './content.ts'
import { type Declarations, readDeclarations } from './declarations.ts'
import { announcedPaths, isOffered } from './paths.ts'

export type DialectLabel = '0.2' | '0.3' | '0.4' | '0.5'

export interface Announced extends Declarations {
  /** As the server wrote it. */
  readonly version: string
  /** What it is taken for: a hint, never a gate. */
  readonly label: DialectLabel
  readonly pushEvents: boolean
  readonly before: boolean
  readonly after: false | 'told' | 'blocking'
  readonly inference: boolean
  readonly channels: boolean
  readonly lifecycle: boolean
  /** Capabilities by path, `tools` among them. */
  readonly paths: readonly string[]
  /** How content is written to it. */
  readonly form: ContentForm
  /** Its types know no `null` for what the user said, where the turn is over. */
  readonly nullless: boolean
}

/** Undefined: the server is not live. */
export function readAnnounced(capabilities: Capabilities): Announced | undefined {
  const mcpl = liveIn(capabilities)
  return mcpl === undefined ? undefined : announcedBy(mcpl, hasTools(capabilities))
}

/** Whatever it says of them, whoever has the capability has tools. */
export function hasTools({ tools }: Capabilities): boolean {
  return tools === true || isRecord(tools)
}

/** The same of a manifest that was read anew. */
export function announcedBy(mcpl: Readonly<Record<string, unknown>>, tools: boolean): Announced {
  const version = typeof mcpl['version'] === 'string' ? clip(mcpl['version']) : ''
  const label = labelOf(version, Array.isArray(mcpl['featureSets']))
  const hooks = mcpl['contextHooks']
  return {
    version,
    label,
    pushEvents: isOffered(mcpl['pushEvents']),
    before: hooks === true || (isRecord(hooks) && isOffered(hooks['beforeInference'])),
    after: afterOf(hooks),
    inference: mcpl['inferenceRequest'] === true || isRecord(mcpl['inferenceRequest']),
    channels: isOffered(mcpl['channels']),
    lifecycle: isOffered(mcpl['inferenceLifecycle']),
    paths: tools ? ['tools', ...announcedPaths(mcpl).filter(path => path !== 'tools')] : announcedPaths(mcpl),
    form: label === '0.2' ? 'source' : 'flat',
    nullless: Array.isArray(mcpl['featureSets']) && label !== '0.2',
    ...readDeclarations(mcpl['featureSets']),
  }
}

/** Wires with a handshake have it among the experiments, others among the extensions. */
function liveIn(capabilities: Capabilities): Readonly<Record<string, unknown>> | undefined {
  const { experimental, extensions } = capabilities
  const told = isRecord(experimental) ? experimental[mcplName] : undefined
  const extension = isRecord(extensions) ? extensions[liveExtension] : undefined
  if (isRecord(told)) return told
  if (isRecord(extension)) return extension
  return told === true ? {} : undefined
}

/** `true` is the form that waits for no answer. */
function afterOf(hooks: unknown): Announced['after'] {
  const after = isRecord(hooks) ? hooks['afterInference'] : hooks
  if (isRecord(after)) return after['blocking'] === true ? 'blocking' : 'told'
  return after === true ? 'told' : false
}

/** Who does not say is told by the shape of what it does say: cores before 0.5 write their sets as an array. */
function labelOf(version: string, arrayed: boolean): DialectLabel {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? []
  if (major === undefined) return arrayed ? '0.4' : '0.2'
  if (Number(major) > 0 || Number(minor) >= 5) return '0.5'
  return minor === '3' ? '0.3' : minor === '4' ? '0.4' : '0.2'
}
