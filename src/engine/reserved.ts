/**
 * What only the runtime says in `_meta`: which server answers, that a call was made before, what it did cost, who made the result. All
 * that an author, or a server behind a gateway, wrote there goes through `authored`, so that none of it can be taken for the runtime's
 * own word. What the runtime itself has to say is added after that.
 */

import { isRecord, type Params } from '../jsonrpc/message.ts'
import { envelopeKeys, serverInfoKey } from '../revisions/index.ts'
import { NS } from './method.ts'

/** Names the task that a message belongs to. */
export const relatedTaskKey = 'io.modelcontextprotocol/related-task'
/** Names the subscription that a message belongs to. */
export const subscriptionKey = 'io.modelcontextprotocol/subscriptionId'

/** What every message of a wire says of who sends it, and of tasks and subscriptions that only its sender knows. */
const wireKeys: ReadonlySet<string> = new Set([...envelopeKeys, serverInfoKey, relatedTaskKey, subscriptionKey])

const prefix = `${NS}/`
const sources = `${NS}/provenance`

/** The extensions in which an author speaks: where something comes from, and where its content is fetched. */
const authorKeys: ReadonlySet<string> = new Set([sources, `${NS}/data-references`])

/** As much of a `_meta` as is wanted: the same object where that is all of it, undefined where it is nothing. */
export function metaWhere(meta: Params, wanted: (key: string) => boolean): Params | undefined {
  let [all, some] = [true, false]
  for (const key in meta) {
    if (wanted(key)) some = true
    else all = false
  }
  if (all || !some) return some ? meta : undefined
  return Object.fromEntries(Object.entries(meta).filter(([key]) => wanted(key)))
}

/**
 * As much of a `_meta` as an author may write: the same object where that is all of it, undefined where it is nothing. `server` is how
 * the server names itself: a stamp in that name is its runtime's alone. `allowed`: the extensions that count.
 */
export function withoutReservedMeta(
  meta: unknown,
  server: string,
  allowed: ReadonlySet<string> = authorKeys,
): Params | undefined {
  if (!isRecord(meta)) return undefined
  const rest = metaWhere(meta, key => (key.startsWith(prefix) ? allowed.has(key) : !wireKeys.has(key)))
  return rest === undefined || rest[sources] === undefined ? rest : unstamped(rest, server)
}

/** The same value, with as much of its own `_meta` as an author may write, and of that of the resource that it embeds. */
export function withAuthored<T>(value: T, server: string): T {
  if (!isRecord(value)) return value
  const { _meta: meta, resource } = value
  const embedded = isRecord(resource) ? withAuthored(resource, server) : resource
  const stored = meta === undefined ? undefined : withoutReservedMeta(meta, server)
  if (stored === meta && embedded === resource) return value
  const { _meta, ...rest } = value as Params
  return {
    ...rest,
    ...(embedded === resource ? {} : { resource: embedded }),
    ...(stored === undefined ? {} : { _meta: stored }),
  } as T
}

/** The same for a list; it stays the same list where nothing changes. */
export function eachAuthored<T>(values: readonly T[], server: string): readonly T[] {
  let made: T[] | undefined
  for (let at = 0; at < values.length; at++) {
    const value = values[at] as T
    const stored = withAuthored(value, server)
    if (stored === value) continue
    made ??= [...values]
    made[at] = stored
  }
  return made ?? values
}

/** Sources stay what they are, claims; only what would make one of them the word of this runtime goes. */
function unstamped(meta: Params, server: string): Params {
  const said = meta[sources]
  const records: readonly unknown[] = Array.isArray(said) ? said : [said]
  if (!records.some(record => isStampOf(record, server))) return meta
  const claims = records.map(record => (isStampOf(record, server) ? withoutStamp(record) : record))
  return { ...meta, [sources]: Array.isArray(said) ? claims : claims[0] }
}

function isStampOf(record: unknown, server: string): record is Params {
  return isRecord(record) && isRecord(record['stamp']) && record['stamp']['server'] === server
}

function withoutStamp({ stamp: _, ...record }: Params): Params {
  return record
}
