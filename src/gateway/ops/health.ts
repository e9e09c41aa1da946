/** How a gateway is, for load balancers and whoever looks after it: `/health` says that it lives, `/ready` whether it should be given work. */

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import type { Why } from '../../core/suggestion.ts'
import type { Principal } from '../../jsonrpc/connection.ts'
import { put, type Store } from '../../stores/store.ts'
import type { OpenPage, PageReader } from '../../transports/http/listening.ts'
import { upstreamAbsent } from '../bridge/failures.ts'
import type { UpstreamStatus } from '../gateway.ts'

/** What the health pages tell of. */
export interface HealthParts {
  readonly store: Store
  readonly clock: Clock
  /** The first look at all servers is done, or nobody waits for it any more. */
  looked(): boolean
  /** It is about to end. */
  ending(): boolean
  upstreams(): readonly UpstreamStatus[]
  /** Whether a client sees an upstream at all. */
  sees(principal: Principal, upstream: string): boolean
}

/** How long the store may take, and how long what it said is good for. */
const storeMs = 2_000
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

/** All of them to whoever runs the gateway, to a client those that it sees, and undefined to anybody else. */
async function shownTo(
  parts: HealthParts,
  { principal, header }: PageReader,
  reachable: boolean,
): Promise<readonly UpstreamStatus[] | undefined> {
  if (reachable && (await isOperator(parts.store, header(operatorHeader)).catch(() => false))) return parts.upstreams()
  return principal && parts.upstreams().filter(({ name }) => parts.sees(principal, name))
}

/** At most one question at a time, however often it is asked for. */
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

/** How many upstreams are up, and the state of each. */
function counted(upstreams: readonly UpstreamStatus[]) {
  const up = upstreams.filter(({ status }) => status === 'up').length
  const shown = upstreams.map(({ name, status, why, revision, tools, resources, prompts, left }) => ({
    ...{ name, status, revision, tools, resources, prompts, left: left.length },
    ...toldOf(name, why),
  }))
  return { servers: { up, down: upstreams.length - up }, upstreams: shown }
}

/** What its server said when it died is in the log of the gateway, under the reference. */
function toldOf(upstream: string, why: Why | undefined) {
  if (why === undefined) return {}
  const { message, suggestion } = upstreamAbsent(upstream, why)
  return { why: message, fix: suggestion }
}

function page(status: number, said: object) {
  return { status, type: 'application/json', body: `${JSON.stringify(said)}\n` }
}

// How whoever runs a gateway shows that to it over HTTP: by a key that lies on its store. Who can read the store can approve calls there
// anyway; who merely reaches the listener, through whatever proxy, cannot.

/** Not `authorization`: that one may be passed on to an authorization server, which has no business with it. */
export const operatorHeader = 'vivarium-operator-key'
const key = 'gateway/operator-key'

/** Undefined where none was made yet. */
export async function readOperatorKey(store: Store): Promise<string | undefined> {
  return (await store.get(key))?.value
}

/** Compared in constant time. */
async function isOperator(store: Store, shown: string | undefined): Promise<boolean> {
  if (shown === undefined) return false
  const kept = await readOperatorKey(store)
  return kept !== undefined && timingSafeEqual(hashOf(kept), hashOf(shown))
}

/** One for all who share the store. */
export async function makeOperatorKey(store: Store): Promise<void> {
  if ((await readOperatorKey(store)) !== undefined) return
  // Where another process was faster, its key counts.
  await store.commit([put(key, randomBytes(32).toString('base64url'), { ifAbsent: true })])
}

function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
