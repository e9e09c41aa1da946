/**
 * What servers say under our own names. The gateway speaks these extensions with its clients itself: what a server says of a state, an
 * approval, a replay or a right would be taken for the gateway's word, and lead a client to do what nobody asked for. What says only
 * something of the server's own tools and results goes on, and never in the gateway's name. Neither does a server name itself where the
 * gateway answers.
 */
import { authored } from '../../engine/reserved.ts'
import { operationalExtension } from '../../features/reliability/cost/messages.ts'
import { referencesExtension } from '../../features/reliability/data-references/messages.ts'
import { mediaExtension } from '../../features/reliability/media/messages.ts'
import { problemExtension } from '../../features/reliability/problem/messages.ts'
import { provenanceExtension } from '../../features/reliability/provenance/messages.ts'
import { stateExtension } from '../../features/reliability/session-state/messages.ts'
import { streamingExtension } from '../../features/reliability/streaming/messages.ts'

type Meta = Readonly<Record<string, unknown>>

const inResults: ReadonlySet<string> = new Set([
  operationalExtension,
  referencesExtension,
  mediaExtension,
  problemExtension,
  provenanceExtension,
  // By then it is the gateway's own token, in which that of the server is sealed.
  stateExtension,
])
const inDefinitions: ReadonlySet<string> = new Set([operationalExtension, mediaExtension, streamingExtension])

/** The `_meta` of a definition, as it is shown. */
export function definitionMeta(meta: unknown): Meta | undefined {
  return authored(meta, '', inDefinitions)
}

/** The same result, with as much of its `_meta` as goes on. `gateway`: how that names itself. */
export function cleaned<R extends { readonly _meta?: Meta | undefined }>(result: R, gateway: string): R {
  if (result._meta === undefined) return result
  const meta = resultMeta(result._meta, gateway)
  if (meta === result._meta) return result
  const { _meta, ...rest } = result
  return (meta === undefined ? rest : { ...rest, _meta: meta }) as R
}

export function resultMeta(meta: unknown, gateway: string): Meta | undefined {
  return authored(meta, gateway, inResults)
}
