/** How a gateway is, for load balancers and whoever looks after it: `/health` says that it lives, `/ready` whether it should be given work. */
import type { Clock } from '../../core/clock.ts'
import type { Store } from '../../stores/store.ts'
import type { OpenPage } from '../../transports/http/open-page.ts'
import type { UpstreamStatus } from '../gateway.ts'

export interface HealthParts {
  readonly store: Store
  readonly clock: Clock
  /** The first look at all servers is done, or nobody waits for it any more. */
  looked(): boolean
  /** It is about to end. */
  ending(): boolean
  upstreams(): readonly UpstreamStatus[]
}

/** How long the store may take, and how long what it said is good for. */
const storeMs = 2_000
const freshMs = 1_000

export function healthPages(parts: HealthParts): ReadonlyMap<string, OpenPage> {
  const reachable = storeProbe(parts)
  return new Map<string, OpenPage>([
    ['/health', { read: () => page(200, { alive: true }) }],
    [
      '/ready',
      {
        read: async known => {
          const [store, looked, ending] = [await reachable(), parts.looked(), parts.ending()]
          const ready = store && looked && !ending
          return page(ready ? 200 : 503, known ? { ready, store, looked, ending, ...counted(parts.upstreams()) } : { ready })
        },
      },
    ],
  ])
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

function counted(upstreams: readonly UpstreamStatus[]) {
  const up = upstreams.filter(({ status }) => status === 'up').length
  const shown = upstreams.map(({ name, status, why, revision, tools, resources, prompts, left }) => ({
    ...{ name, status, revision, tools, resources, prompts, left: left.length },
    ...(why !== undefined && { why: why.message, fix: why.fix }),
  }))
  return { servers: { up, down: upstreams.length - up }, upstreams: shown }
}

function page(status: number, said: object) {
  return { status, type: 'application/json', body: `${JSON.stringify(said)}\n` }
}
