/** What a client gives its features, and how a list of them becomes one. */
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

/** A kit, and what the client itself needs of what it is made of. */
export interface ClientOwnKit extends ClientKit {
  readonly parts: readonly ClientParts[]
  /** What a request is sent with to which nobody adds anything. */
  readonly sendPlain: SendOptions
  /** There from the time at which all features are set up. */
  engine: Engine | undefined
  /** There from the time at which the server is open. */
  opened: ClientSession | undefined
}

interface KitSettings {
  readonly clock: Clock
  readonly timeoutMs: number
  readonly address: URL | undefined
}

/** Sets up all features, in their order. */
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
      if (kit.opened === undefined) throw new Error('There is no session yet: the server is being opened')
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

function extensionsAt(parts: readonly ClientParts[], point: ExtensionPoint<unknown>): readonly unknown[] {
  return parts.flatMap(({ extensions = [] }) => extensions.filter(each => each.point === point).map(({ value }) => value))
}

const standard: RequestOptions = {}

/** What requests are sent with: most with the same. */
function sender(parts: readonly ClientParts[], plain: { readonly timeoutMs: number }): ClientKit['send'] {
  /** Found when first needed: by then all features are set up. */
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

/** Refuses what a server asks too often, naming the limit and the wait. */
function admission(what: string, rate: RequestRate | false, clock: Clock): () => void {
  if (rate === false) return () => {}
  const buckets = createBuckets({ ...rate, clock })
  return () => {
    const wait = buckets.take('server')
    if (wait === 0) return
    const data = { limit: what, retryAfterMs: wait }
    throw new McpError('rate-limited', `Too many ${what}: wait ${wait} ms and try again`, { data })
  }
}
