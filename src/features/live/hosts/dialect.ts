/** How a host speaks MCP Live, told from what it declares. The version is a hint: real hosts say one and do another. */
import { declared } from '../../../engine/extensions.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Capabilities, Implementation, Peer } from '../../../revisions/index.ts'
import { liveExtension, mcplName } from '../feature-sets/messages.ts'
import type { HostDialect } from './messages.ts'

export type SetsForm = 'object' | 'array' | 'auto'

/** What a host declared of MCP Live; undefined for a plain one. */
export function liveIn(peer: Pick<Peer, 'capabilities' | 'revision'>): Readonly<Record<string, unknown>> | undefined {
  if (peer.revision.era === 'request') return declared(peer, liveExtension)
  const { experimental } = peer.capabilities
  const said = isRecord(experimental) ? experimental[mcplName] : undefined
  return isRecord(said) ? said : said === true ? {} : undefined
}

export function hostDialectOf(said: Capabilities, info: Implementation | undefined, form: SetsForm = 'auto'): HostDialect {
  const version = typeof said['version'] === 'string' ? said['version'] : '0.2'
  const label = labelOf(version)
  return {
    version,
    label,
    arrays: form === 'array' || (form === 'auto' && readsArrays(said, info, label)),
    source: /^0\.[12](\.|$)/.test(version),
  }
}

function labelOf(version: string): HostDialect['label'] {
  const [major = 0, minor = 2] = version.split('.').map(Number)
  if (major > 0 || minor >= 5) return '0.5'
  return minor === 4 ? '0.4' : minor === 3 ? '0.3' : '0.2'
}

/** Hosts built on the first cores have words of their own, or are known by name. */
function readsArrays(said: Capabilities, info: Implementation | undefined, label: HostDialect['label']): boolean {
  if ('scopedAccess' in said || 'streamObserver' in said) return true
  return said['channels'] === true && label !== '0.5' && info?.name.startsWith('mcpl-harness') === true
}
