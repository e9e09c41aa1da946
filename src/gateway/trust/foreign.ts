/**
 * What servers say under our own names. The gateway speaks these extensions with its clients itself: what a server says of a state, an
 * approval, a replay or a right would be taken for the gateway's word, and lead a client to do what nobody asked for. What says only
 * something of the server's own tools and results goes on, and never in the gateway's name. Neither does a server name itself where the
 * gateway answers.
 */
import { NS } from '../../core/namespace.ts'
import { relatedTaskKey } from '../../features/mcp/tasks/messages.ts'
import { operationalExtension } from '../../features/reliability/cost/messages.ts'
import { referencesExtension } from '../../features/reliability/data-references/messages.ts'
import { mediaExtension } from '../../features/reliability/media/messages.ts'
import { problemExtension } from '../../features/reliability/problem/messages.ts'
import { provenanceExtension, recordsIn } from '../../features/reliability/provenance/messages.ts'
import { stateExtension } from '../../features/reliability/session-state/messages.ts'
import { streamingExtension } from '../../features/reliability/streaming/messages.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { envelopeKeys, serverInfoKey } from '../../revisions/index.ts'

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
  return kept(meta, inDefinitions)
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
  const rest = kept(meta, inResults)
  const records = recordsIn(rest)
  if (rest === undefined || records?.some(record => isStampOf(record, gateway)) !== true) return rest
  return { ...rest, [provenanceExtension]: records.map(record => (isStampOf(record, gateway) ? unstamped(record) : record)) }
}

function isStampOf(record: unknown, gateway: string): record is Meta {
  return isRecord(record) && isRecord(record['stamp']) && record['stamp']['server'] === gateway
}

function unstamped({ stamp: _, ...record }: Meta): Meta {
  return record
}

/** The same object where there is nothing to leave out; undefined where nothing is left. */
function kept(meta: unknown, allowed: ReadonlySet<string>): Meta | undefined {
  if (!isRecord(meta)) return undefined
  let [all, some] = [true, false]
  for (const key in meta) {
    if (goesOn(key, allowed)) some = true
    else all = false
  }
  if (all || !some) return some ? meta : undefined
  return Object.fromEntries(Object.entries(meta).filter(([key]) => goesOn(key, allowed)))
}

const prefix = `${NS}/`
/** What every message of a wire says of who sends it, and of tasks that only its sender knows. */
const ofTheWire: ReadonlySet<string> = new Set([...envelopeKeys, serverInfoKey, relatedTaskKey])

function goesOn(key: string, allowed: ReadonlySet<string>): boolean {
  return key.startsWith(prefix) ? allowed.has(key) : !ofTheWire.has(key)
}
