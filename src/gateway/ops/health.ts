/** The pages `/health` (the process runs) and `/ready` (it should get traffic), and the key that shows an operator more on them. */

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import type { Why } from '../../core/suggestion.ts'
import type { Principal } from '../../jsonrpc/connection.ts'
import { put, type Store } from '../../stores/store.ts'
import type { OpenPage, PageReader } from '../../transports/http/listening.ts'
import { upstreamAbsent } from '../bridge/failures.ts'
import type { UpstreamStatus } from '../gateway.ts'

/** What the health pages report on. */
interface HealthParts {
  readonly store: Store
  readonly clock: Clock
  /** The first listing of all upstreams is done, or requests no longer wait for it. */
  looked(): boolean
  /** The gateway is closing. */
  ending(): boolean
  upstreams(): readonly UpstreamStatus[]
  /** Whether a client may know of an upstream. */
  sees(principal: Principal, upstream: string): boolean
}

/** How long the store may take to answer. */
const storeMs = 2_000
/** How long its answer is reused. */
const freshMs = 1_000

/** The pages `/health` and `/ready`. */
export function healthPages(parts: HealthParts): ReadonlyMap<string, OpenPage> {
  const reachable = storeProbe(parts)
  return new Map<string, OpenPage>([
    ['/health', { read: () => page(200, { alive: true }) }],
    [
      '/ready',
      {
        read: async reader => {
          const [store, looked, ending] = [await reachable(), parts.looked(), parts.ending()]
          const ready = store && looked && !ending
          const shown = await shownTo(parts, reader, store)
          return page(ready ? 200 : 503, shown === undefined ? { ready } : { ready, store, looked, ending, ...counted(shown) })
        },
      },
    ],
  ])
}

/** The upstreams that a reader may see: all for the operator, the visible ones for a client, undefined for anyone else. */
async function shownTo(
  parts: HealthParts,
  { principal, header }: PageReader,
  reachable: boolean,
): Promise<readonly UpstreamStatus[] | undefined> {
  if (reachable && (await isOperator(parts.store, header(operatorHeader)).catch(() => false))) return parts.upstreams()
  return principal && parts.upstreams().filter(({ name }) => parts.sees(principal, name))
}

/** Checks whether the store answers; concurrent checks share one query. */
function storeProbe({ store, clock }: HealthParts): () => Promise<boolean> {
  let last: { readonly at: number; readonly answer: Promise<boolean> } | undefined
  return () => {
    if (last !== undefined && clock.now() - last.at < freshMs) return last.answer
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const cancel = clock.setTimeout(() => resolve(false), storeMs, true)
    store.get('gateway/health').then(
      () => resolve(true),
      () => resolve(false),
    )
    last = { at: clock.now(), answer: promise.finally(cancel) }
    return last.answer
  }
}

/** How many upstreams are connected, and the state of each. */
function counted(upstreams: readonly UpstreamStatus[]) {
  const up = upstreams.filter(({ status }) => status === 'up').length
  const shown = upstreams.map(({ name, status, why, revision, tools, resources, prompts, left }) => ({
    ...{ name, status, revision, tools, resources, prompts, left: left.length },
    ...toldOf(name, why),
  }))
  return { servers: { up, down: upstreams.length - up }, upstreams: shown }
}

/** The reason in neutral words; what the upstream itself said is only in the log, under the reference. */
function toldOf(upstream: string, why: Why | undefined) {
  if (why === undefined) return {}
  const { message, suggestion } = upstreamAbsent(upstream, why)
  return { why: message, fix: suggestion }
}

/** A JSON page. */
function page(status: number, said: object) {
  return { status, type: 'application/json', body: `${JSON.stringify(said)}\n` }
}

// The operator key: lies in the store and proves the operator's identity over HTTP. Anyone who can read the store can approve calls there
// anyway, and a client that only reaches the listener cannot read it.

/** A separate header: `authorization` may be sent on to an authorization server. */
export const operatorHeader = 'vivarium-operator-key'
const key = 'gateway/operator-key'

/** The key; undefined where none was created yet. */
export async function readOperatorKey(store: Store): Promise<string | undefined> {
  return (await store.get(key))?.value
}

/** Whether a shown key is the operator's; compared in constant time. */
async function isOperator(store: Store, shown: string | undefined): Promise<boolean> {
  if (shown === undefined) return false
  const stored = await readOperatorKey(store)
  return stored !== undefined && timingSafeEqual(hashOf(stored), hashOf(shown))
}

/** Creates the key, one for all processes that share the store. */
export async function makeOperatorKey(store: Store): Promise<void> {
  if ((await readOperatorKey(store)) !== undefined) return
  // `ifAbsent`: where another process was faster, its key counts.
  await store.commit([put(key, randomBytes(32).toString('base64url'), { ifAbsent: true })])
}

function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
