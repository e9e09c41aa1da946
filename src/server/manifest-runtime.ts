/** Where what the manifest says comes from. Loaded when it is first written. */
import type { Clock } from '../core/clock.ts'
import { toMilliseconds } from '../core/duration.ts'
import type { Engine } from '../engine/engine.ts'
import type { Exchange } from '../engine/exchange.ts'
import { requestAs, requestInternally } from '../engine/internal-calls.ts'
import type { CacheHint } from '../engine/paging.ts'
import type { Side } from '../engine/plan.ts'
import { listTools, type Tool } from '../features/mcp/tools/messages.ts'
import { describeEvents } from '../features/reliability/events/describe.ts'
import type { DocumentParts } from '../features/reliability/manifest/document.ts'
import { getManifest, manifestExtension, type WireManifestResult } from '../features/reliability/manifest/messages.ts'
import type { ManifestOptions } from '../features/reliability/manifest/server.ts'
import type { WireRateLimits } from '../features/reliability/manifest/shape.ts'
import type { Caller } from '../jsonrpc/connection.ts'
import { isRecord } from '../jsonrpc/message.ts'
import type { Revision } from '../revisions/index.ts'
import type { DocumentText } from '../transports/http/document.ts'
import type { ServerManifestParts } from './manifest.ts'
import type { ServerOptions } from './options.ts'
import type { Rates } from './rates.ts'

export function documentOf(
  { permissions }: ServerOptions,
  { auth, scopes, homepage }: ManifestOptions,
  { engine, sides, tools, rates, recommendations, events }: ServerManifestParts,
  cache: CacheHint,
  own: Side,
): DocumentParts {
  const { info, spoken } = engine()
  const idle = permissions?.grant === undefined ? undefined : toMilliseconds(permissions.idle ?? '15m', 'permissions.idle')
  const { callsPerMinute } = rates
  return {
    info,
    // The dialect names itself by the version of another wire.
    spoken: [...spoken.requests, ...spoken.sessions],
    snapshot: () => tools.catalog.snapshot,
    extensions: (revision: Revision) => extensionsOf(sides(), own, revision),
    homepage,
    methods: auth,
    scopes,
    sessionTtlSeconds: idle && Math.floor(idle / 1000),
    rateLimits: callsPerMinute === undefined ? undefined : { requests_per_minute: callsPerMinute },
    recommendations,
    events: {
      version: () => events.catalog.snapshot.version,
      listed: revision => describeEvents(events.catalog.snapshot.entries, events.delivery(revision)),
    },
    cache,
  }
}

/** The ids that all sides but the manifest's own declare, wherever the wire has its place for them. */
function extensionsOf(sides: readonly Side[], own: Side, revision: Revision): readonly string[] {
  const declared = sides.filter(side => side !== own).map(side => side.capabilities?.(revision) ?? {})
  const places = declared.flatMap(({ extensions, experimental }) => [extensions, experimental])
  return places.flatMap(place => (isRecord(place) ? Object.keys(place) : []))
}

/** All pages of the list, as this caller would get them. */
export async function visibleTools(exchange: Exchange): Promise<readonly Tool[]> {
  const all: Tool[] = []
  let cursor: string | undefined
  do {
    const page = await requestInternally(exchange, listTools, cursor === undefined ? {} : { cursor })
    all.push(...page.tools)
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return all
}

export function countersOf(rates: Rates, clock: Clock, exchange: Exchange): WireRateLimits {
  const left = rates.callsLeft(exchange)
  if (left === undefined) return {}
  return { remaining: Math.floor(left.tokens), resets_at: new Date(clock.now() + left.fullInMs).toISOString() }
}

const texts = new WeakMap<object, string>()

/** For whoever asks by HTTP alone, and never by a revision, so that it always comes whole. */
export async function readDocument(engine: Engine, caller: Caller): Promise<DocumentText> {
  const capabilities = { extensions: { [manifestExtension]: {} } }
  const result = (await requestAs(engine, getManifest, {}, caller, capabilities)) as WireManifestResult
  const { manifest, revision, ttlMs, cacheScope } = result
  const text = texts.get(manifest) ?? JSON.stringify(manifest)
  texts.set(manifest, text)
  return { text, tag: revision, maxAgeMs: ttlMs, cacheScope }
}
