/** What a client provides to its features (the kit), and how a list of features becomes one client. */
import { createBuckets } from '../core/bucket.ts'
import { type Clock, toMilliseconds } from '../core/clock.ts'
import type { SendOptions } from '../engine/calls.ts'
import type {
  ClientKit,
  ClientParts,
  ClientSession,
  ExtensionPoint,
  RequestOptions,
  RequestRate,
} from '../engine/client-feature.ts'
import type { Engine } from '../engine/engine.ts'
import { Ports } from '../engine/ports.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { Params } from '../jsonrpc/message.ts'
import type { ConnectOptions } from './api.ts'
import type { ConnectFeature } from './features.ts'

/** The kit, with what the client itself needs of its features. */
export interface ClientOwnKit extends ClientKit {
  readonly parts: readonly ClientParts[]
  /** The send options of requests without additions. */
  readonly sendPlain: SendOptions
  /** Set once all features are installed. */
  engine: Engine | undefined
  /** Set once the server is open. */
  opened: ClientSession | undefined
}

interface KitSettings {
  readonly clock: Clock
  readonly timeoutMs: number
  readonly address: URL | undefined
}

/** Installs all features, in order. */
export function installClientFeatures(
  features: readonly ConnectFeature[],
  options: ConnectOptions,
  { clock, timeoutMs, address }: KitSettings,
): ClientOwnKit {
  const sendPlain = { timeoutMs }
  const ports = new Ports()
  const parts: ClientParts[] = []
  const points = new Map<ExtensionPoint<unknown>, readonly unknown[]>()
  const kit: ClientOwnKit = {
    clock,
    address,
    parts,
    sendPlain,
    engine: undefined,
    opened: undefined,
    get session() {
      if (kit.opened === undefined) throw new Error('There is no session yet: the connection is still being opened')
      return kit.opened
    },
    trace: (event, detail) => kit.engine?.trace(event, detail),
    send: sender(parts, sendPlain),
    admission: (what, rate) => admission(what, rate, clock),
    port: token => ports.get(token),
    extensions: <T>(point: ExtensionPoint<T>) => {
      const known = points.get(point) ?? extensionsAt(parts, point)
      points.set(point, known)
      return known as readonly T[]
    },
  }
  for (const { provides, setup } of features) {
    const part = setup(kit, options)
    if (provides !== undefined) ports.provide(provides, part.port)
    parts.push(part)
  }
  return kit
}

/** What all features contribute to an extension point. */
function extensionsAt(parts: readonly ClientParts[], point: ExtensionPoint<unknown>): readonly unknown[] {
  return parts.flatMap(({ extensions = [] }) => extensions.filter(each => each.point === point).map(({ value }) => value))
}

const standard: RequestOptions = {}

/** Makes the send options of a request; most requests share one object. */
function sender(parts: readonly ClientParts[], plain: { readonly timeoutMs: number }): ClientKit['send'] {
  /** Computed on first use, when all features are installed. */
  let adding: readonly ClientParts[] | undefined
  return ({ signal, timeout, meta: own } = standard) => {
    let added: Params | undefined
    adding ??= parts.filter(part => part.meta !== undefined)
    for (const part of adding) {
      const more = part.meta?.()
      if (more !== undefined) added = { ...added, ...more }
    }
    const meta = added === undefined ? own : { ...added, ...own }
    if (signal === undefined && timeout === undefined && meta === undefined) return plain
    return {
      timeoutMs: timeout === undefined ? plain.timeoutMs : toMilliseconds(timeout, 'timeout'),
      ...(signal === undefined ? {} : { signal }),
      ...(meta === undefined ? {} : { meta }),
    }
  }
}

/** Limits how often a server may ask; the error names the limit and the wait. */
function admission(what: string, rate: RequestRate | false, clock: Clock): () => void {
  if (rate === false) return () => {}
  const buckets = createBuckets({ ...rate, clock })
  return () => {
    const wait = buckets.take('server')
    if (wait === 0) return
    const data = { limit: what, retryAfterMs: wait }
    throw new McpError('rate-limited', `Too many ${what}. Retry in ${wait} ms`, { data })
  }
}
