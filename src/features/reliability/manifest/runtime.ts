/** Where what the manifest says comes from. Loaded when it is first written. */
import type { Engine } from '../../../engine/engine.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { requestAs, requestInternally } from '../../../engine/internal-calls.ts'
import type { CacheHint } from '../../../engine/paging.ts'
import type { Side } from '../../../engine/plan.ts'
import type { BesideEndpoint, ServerKit } from '../../../engine/server-feature.ts'
import type { Caller } from '../../../jsonrpc/connection.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Revision } from '../../../revisions/index.ts'
import { ratesPort } from '../../mcp/rates/messages.ts'
import { listTools, type Tool, toolsPort } from '../../mcp/tools/messages.ts'
import { eventsPort } from '../events/messages.ts'
import { permissionsPort } from '../permissions/messages.ts'
import { recommendationsPort } from '../recommendations/messages.ts'
import type { DocumentParts } from './document.ts'
import { getManifest, manifestExtension, type WireManifestResult } from './messages.ts'
import type { ManifestOptions } from './server.ts'
import type { WireRateLimits } from './shape.ts'

/** What is given to whoever asks by HTTP alone. */
type ManifestText = Awaited<ReturnType<NonNullable<BesideEndpoint['document']>['read']>>

export async function documentOf(
  kit: ServerKit,
  { auth, scopes, homepage }: ManifestOptions,
  cache: CacheHint,
  own: Side,
): Promise<DocumentParts> {
  const { info, spoken } = kit.engine()
  const tools = kit.port(toolsPort)
  const events = kit.port(eventsPort)
  const { sessionMs } = kit.port(permissionsPort)
  const { callsPerMinute } = kit.port(ratesPort)
  return {
    info,
    // The dialect names itself by the version of another wire.
    spoken: [...spoken.requests, ...spoken.sessions],
    snapshot: () => tools.catalog.snapshot,
    extensions: (revision: Revision) => extensionsOf(kit.sides(), own, revision),
    homepage,
    methods: auth,
    scopes,
    sessionTtlSeconds: sessionMs && Math.floor(sessionMs / 1000),
    rateLimits: callsPerMinute === undefined ? undefined : { requests_per_minute: callsPerMinute },
    recommendations: kit.port(recommendationsPort).listed,
    events: { version: events.version, listed: await events.describing() },
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

export function countersOf({ clock, port }: ServerKit, exchange: Exchange): WireRateLimits {
  const left = port(ratesPort).callsLeft(exchange)
  if (left === undefined) return {}
  return { remaining: Math.floor(left.tokens), resets_at: new Date(clock.now() + left.fullInMs).toISOString() }
}

const texts = new WeakMap<object, string>()

/** For whoever asks by HTTP alone, and never by a revision, so that it always comes whole. */
export async function readDocument(engine: Engine, caller: Caller): Promise<ManifestText> {
  const capabilities = { extensions: { [manifestExtension]: {} } }
  const result = (await requestAs(engine, getManifest, {}, caller, capabilities)) as WireManifestResult
  const { manifest, revision, ttlMs, cacheScope } = result
  const text = texts.get(manifest) ?? JSON.stringify(manifest)
  texts.set(manifest, text)
  return { text, tag: revision, maxAgeMs: ttlMs, cacheScope }
}
