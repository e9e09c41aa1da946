/** The event streams of one face of a server. Where sessions are shared their logs are, too, and any process goes on with any stream. */
import type { Engine } from '../engine/engine.ts'
import type { CallerDocument, Downloads } from '../transports/http/document.ts'
import type { HttpLimits } from '../transports/http/limits.ts'
import type { storeLogs } from '../transports/http/store-logs.ts'
import type { Streams } from '../transports/http/streams.ts'

interface StreamOptions {
  readonly limits?: Partial<HttpLimits>
  readonly priming?: boolean | undefined
}

/** Loads what is needed. */
export async function openStreams(engine: Engine, options: StreamOptions = {}): Promise<Streams> {
  const [{ Streams }, logs] = await Promise.all([
    import('../transports/http/streams.ts'),
    engine.sharing === undefined ? undefined : import('../transports/http/store-logs.ts'),
  ])
  return streamsOf(engine, Streams, logs?.storeLogs, options)
}

/** The event streams of one face, with the classes that the caller has loaded. */
export function streamsOf(
  engine: Engine,
  Table: typeof Streams,
  logs: typeof storeLogs | undefined,
  { limits = {}, priming = true }: StreamOptions = {},
): Streams {
  const { clock, sharing, trace } = engine
  const failed = (error: unknown): void => trace('stream-not-kept', error)
  const streams = new Table({
    limits,
    clock,
    priming,
    ...(sharing === undefined || logs === undefined
      ? {}
      : { shared: all => logs({ ...sharing.parts, clock, limits: all, failed }) }),
  })
  const { shared } = streams
  if (shared !== undefined) sharing?.onClose(() => shared.close())
  engine.onSessionEnd((id, forAll) => streams.forget(id, forAll))
  return streams
}

// What a server shows beside its endpoint, for every way of serving it over HTTP.

/** By engine, for every carrier that is opened later. */
interface Beside {
  readonly document?: CallerDocument | undefined
  readonly downloads?: Downloads | undefined
}

const none: Beside = {}
const known = new WeakMap<Engine, Beside>()

/** Has every carrier that is opened later show a document or downloads beside the endpoint. */
export function addExtraRoutes(engine: Engine, more: Beside): void {
  known.set(engine, { ...known.get(engine), ...more })
}

/** What carriers show beside the endpoint. */
export function extraRoutesOf(engine: Engine): Beside {
  return known.get(engine) ?? none
}
