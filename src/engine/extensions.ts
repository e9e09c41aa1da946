/**
 * What a peer declared of extensions, and how we declare ours. Where each request declares for itself, only the current one counts.
 */
import { isRecord } from '../jsonrpc/message.ts'
import type { Capabilities, Peer, Revision } from '../revisions/index.ts'
import { capabilityMissing } from './asking.ts'
import type { Layer } from './stages.ts'

/** The settings that the peer declared for an extension; undefined where it declared none. */
export function declaredSettings(
  peer: Pick<Peer, 'capabilities' | 'revision'>,
  id: string,
): Readonly<Record<string, unknown>> | undefined {
  const { capabilities, revision } = peer
  const settings = member(capabilities, 'extensions', id)
  // Wires without a place for extensions let peers declare them among the experimental ones.
  return settings ?? (revision.era === 'session' ? member(capabilities, 'experimental', id) : undefined)
}

/** How an extension is declared on a wire: nothing where the wire has no place for it. */
export function extensionCapability({ extensionsIn }: Revision, extension: string, settings: Capabilities = {}): Capabilities {
  return extensionsIn === undefined ? {} : { [extensionsIn]: { [extension]: settings } }
}

/** In front of an extension's methods: whoever did not declare it learns what is missing, and nothing else happens. */
export function extensionGate(id: string): Layer {
  return {
    stage: 'enter',
    run: (exchange, next) => {
      if (declaredSettings(exchange.peer, id) !== undefined) return next()
      throw capabilityMissing(exchange.route.method.name, { extensions: { [id]: {} } })
    },
  }
}

/** The same peer, as if it had declared these too. */
export function withDeclared(peer: Peer, ids: readonly string[]): Peer {
  const { capabilities } = peer
  const said = isRecord(capabilities['extensions']) ? capabilities['extensions'] : {}
  const more = Object.fromEntries(ids.filter(id => declaredSettings(peer, id) === undefined).map(id => [id, {}]))
  return { ...peer, capabilities: { ...capabilities, extensions: { ...said, ...more } } }
}

function member(capabilities: Capabilities, place: string, id: string): Readonly<Record<string, unknown>> | undefined {
  const all = capabilities[place]
  const found = isRecord(all) && Object.hasOwn(all, id) ? all[id] : undefined
  return isRecord(found) ? found : undefined
}

// Capabilities that several features declare, as one.

/** One level deep: several may add to one capability. */
export function merged(declared: readonly (Capabilities | undefined)[]): Capabilities {
  const all: Record<string, unknown> = {}
  for (const some of declared) {
    for (const [name, value] of Object.entries(some ?? {})) {
      const before = all[name]
      all[name] = isRecord(before) && isRecord(value) ? { ...before, ...value } : value
    }
  }
  return all
}
