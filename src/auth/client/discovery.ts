/**
 * From a refusal to the authorization server (2026-07-28 basic/authorization/authorization-server-discovery): the metadata
 * of the resource names it, its own metadata says how to talk to it. Servers of 2025-03-26 have neither, or only the second.
 */
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { AuthorizationError, checkEndpoint, isLoopbackUrl, metadataUrls } from '../addresses.ts'
import { issuerMismatch } from './issuer-binding.ts'
import { anyRevisionHas, type OutboundContext } from './options.ts'
import { type AuthorizationServer, readServerMetadata } from './protocol.ts'

/** What is known of where tokens for a server come from. */
export interface DiscoveredAuthorization {
  readonly server: AuthorizationServer
  /** The identifier of the MCP server, for which tokens are asked (RFC 8707). */
  readonly resource: string
  /** The scopes that the resource suggests. */
  readonly suggested: readonly string[]
  /** Found by the rules of 2025-03-26, whose authorization servers need not tell what they support. */
  readonly old: boolean
}

interface Looking {
  readonly context: OutboundContext
  readonly signal: AbortSignal
  /** The authorization server that is wanted among several, or alone. */
  readonly issuer?: string | undefined
}

/** `named`: the address of the resource's metadata, where the challenge has one. */
export async function discoverAuthorization(looking: Looking, named: string | undefined): Promise<DiscoveredAuthorization> {
  const { context } = looking
  const metadata = named === undefined ? await guessResource(looking) : await namedResource(looking, named)
  if (metadata === undefined) return oldServer(looking)
  const resource = checkResource(metadata['resource'], context.server)
  const issuer = chooseIssuer(metadata['authorization_servers'], looking)
  const server = await findServer(issuer, looking)
  const suggested = strings(metadata['scopes_supported'])
  return { server, resource, suggested, old: false }
}

// ── the resource ────────────────────────────────────────────────────────────────────────────────────────────────────

type Metadata = Readonly<Record<string, unknown>>

async function namedResource(looking: Looking, named: string): Promise<Metadata> {
  const url = checkEndpoint(named, 'resource_metadata', looking.context.server)
  const got = await fetchJson(url, looking)
  if (got.value !== undefined) return got.value
  throw new AuthorizationError('resource-metadata', `The resource metadata at ${clip(url.href)} is not usable: ${got.why}`)
}

/** At the path of the server, then at the root. */
async function guessResource(looking: Looking): Promise<Metadata | undefined> {
  const { server } = looking.context
  const path = server.pathname.replace(/\/$/, '')
  const places = path === '' ? [''] : [path, '']
  return firstOf(
    places.map(place => `${server.origin}/.well-known/oauth-protected-resource${place}`),
    looking,
  )
}

/** The first place that answers. Where none does, something that was there but made no sense is an error, absence is not. */
async function firstOf(places: readonly string[], looking: Looking): Promise<Metadata | undefined> {
  let wrong: string | undefined
  for (const place of places) {
    const { value, why, absent } = await fetchJson(new URL(place), looking)
    if (value !== undefined) return value
    if (absent !== true) wrong ??= `${clip(place)} is not usable: ${why}`
  }
  if (wrong !== undefined) throw new AuthorizationError('resource-metadata', `The metadata at ${wrong}`)
  return undefined
}

/** The very server, or a part of its origin that it lies in; a token for anything else is not for this server. */
function checkResource(value: unknown, server: URL): string {
  const resource = typeof value === 'string' ? URL.parse(value) : null
  if (typeof value === 'string' && resource !== null && resource.origin === server.origin && resource.hash === '') {
    const path = resource.pathname
    const inside = path.endsWith('/') ? server.pathname.startsWith(path) : `${server.pathname}/`.startsWith(`${path}/`)
    const same = resource.search === '' || resource.search === server.search
    if ((inside || path === `${server.pathname}/`) && same) return value
  }
  const said = typeof value === 'string' ? clip(value) : 'no resource'
  throw new AuthorizationError(
    'resource-mismatch',
    `The metadata is about ${said}, not about ${clip(canonical(server))}; connect to the address in the metadata`,
  )
}

function chooseIssuer(value: unknown, { issuer }: Looking): string {
  const listed = strings(value)
  if (issuer !== undefined) {
    if (listed.includes(issuer)) return issuer
    throw issuerMismatch(issuer, listed.length === 0 ? 'none' : listed.join(', '))
  }
  const first = listed[0]
  if (first !== undefined) return first
  throw new AuthorizationError(
    'resource-metadata',
    'The resource metadata names no authorization server; the server must name one',
  )
}

// ── the authorization server ────────────────────────────────────────────────────────────────────────────────────────

async function findServer(issuer: string, looking: Looking): Promise<AuthorizationServer> {
  const url = checkEndpoint(issuer, 'authorization server', looking.context.server)
  for (const place of metadataUrls(url)) {
    const server = await readServer(place, issuer, looking)
    if (server !== undefined) return server
  }
  throw new AuthorizationError(
    'server-metadata',
    `The authorization server ${clip(issuer)} has no metadata at the well-known addresses (RFC 8414, OpenID discovery)`,
  )
}

async function readServer(place: string, issuer: string, looking: Looking): Promise<AuthorizationServer | undefined> {
  const response = await reach(new URL(place), looking)
  if (response.status >= 400 && response.status < 500) return undefined
  checkUnmoved(response, place)
  return readServerMetadata(response, issuer)
}

/** 2025-03-26 basic/authorization: the server is its own authorization server, at the root of its origin. */
async function oldServer(looking: Looking): Promise<DiscoveredAuthorization> {
  const { server } = looking.context
  if (!anyRevisionHas(looking.context, 'authorizesItself')) {
    throw new AuthorizationError(
      'resource-metadata',
      'The server requires a token, but has no metadata that names its authorization server (RFC 9728); only revision 2025-03-26 works without',
    )
  }
  const { origin } = server
  const found = await oldMetadata(origin, looking)
  const fallback: AuthorizationServer = {
    // Without metadata both spellings of the root are its name, and the one that is wanted will do.
    issuer: looking.issuer === `${origin}/` ? looking.issuer : origin,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
  }
  return { server: found ?? fallback, resource: canonical(server), suggested: [], old: true }
}

/** The issuer is not named by anybody here, so both spellings of the root are its name. */
async function oldMetadata(origin: string, looking: Looking): Promise<AuthorizationServer | undefined> {
  const place = `${origin}/.well-known/oauth-authorization-server`
  const response = await reach(new URL(place), looking)
  if (response.status >= 400 && response.status < 500) return undefined
  checkUnmoved(response, place)
  const text = await response.text()
  const again = (): Response => new Response(text, { status: response.status, headers: response.headers })
  try {
    return await readServerMetadata(again(), origin)
  } catch (error) {
    if (!(error instanceof AuthorizationError) || error.rule !== 'issuer-mismatch') throw error
    return readServerMetadata(again(), `${origin}/`)
  }
}

/** This document says where secrets go: whoever a redirect leads to must not get to write it. */
function checkUnmoved({ redirected, url }: Response, place: string): void {
  const [from, to] = [new URL(place).origin, URL.parse(url)?.origin]
  if (!redirected || to === from) return
  throw new AuthorizationError(
    'server-metadata',
    `The metadata of the authorization server ${clip(from)} redirects to ${clip(to ?? 'elsewhere')}, which is not trusted; the MCP server must name the final issuer`,
  )
}

/** Without a slash that stands for no path at all, and without a query, which may hold a key. */
function canonical({ origin, pathname }: URL): string {
  return `${origin}${pathname === '/' ? '' : pathname}`
}

// ── fetching ────────────────────────────────────────────────────────────────────────────────────────────────────────

interface FetchedMetadata {
  readonly value?: Metadata
  readonly why?: string
  /** There is nothing at this place. */
  readonly absent?: boolean
}

async function fetchJson(url: URL, looking: Looking): Promise<FetchedMetadata> {
  const response = await reach(url, looking)
  if (response.status !== 200) {
    const absent = response.status >= 400 && response.status < 500
    return { why: `HTTP ${response.status}`, absent }
  }
  try {
    const value: unknown = await response.json()
    return isRecord(value) ? { value } : { why: 'it is not a JSON object' }
  } catch {
    return { why: 'it is not JSON' }
  }
}

async function reach(url: URL, { context, signal }: Looking): Promise<Response> {
  const newest = context.revisions
    .filter(id => /^\d/.test(id))
    .toSorted()
    .at(-1)
  const version: Record<string, string> = newest === undefined ? {} : { 'mcp-protocol-version': newest }
  try {
    return await context.outbound(url, { headers: { accept: 'application/json', ...version }, signal })
  } catch (error) {
    signal.throwIfAborted()
    const what = isLoopbackUrl(url) ? `${url.origin}${url.pathname}` : url.origin
    throw new AuthorizationError(
      'address',
      `The request to ${clip(what)} failed: ${error instanceof Error ? clip(error.message, 200) : 'unknown reason'}`,
    )
  }
}

function strings(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter(item => typeof item === 'string') : []
}

// Which scopes are asked for (2026-07-28 basic/authorization, "Scope Selection Strategy").

/** The scopes of a space-separated list (RFC 6749 §3.3). */
export function scopesIn(text: string | undefined): readonly string[] {
  return text === undefined ? [] : text.split(/\s+/).filter(scope => scope !== '')
}

function union(...lists: readonly (readonly string[])[]): readonly string[] {
  return [...new Set(lists.flat())]
}

interface ScopeFacts {
  /** Of the challenge: what the request at hand needs. */
  readonly challenged: readonly string[]
  /** Of the resource metadata: what the server suggests to begin with. */
  readonly suggested: readonly string[]
  /** By the option of this client. */
  readonly wanted: readonly string[]
  /** What was asked for before at this authorization server: it is not given up for something new. */
  readonly before: readonly string[]
  /** Whether a refresh token is wanted and the authorization server lists the scope for it. */
  readonly offline: boolean
}

/** Empty: no scope is named at all, and the authorization server decides. */
export function chooseScopes({ challenged, suggested, wanted, before, offline }: ScopeFacts): readonly string[] {
  const named = union(wanted, challenged)
  const first = named.length > 0 || before.length > 0 ? named : suggested
  const scopes = union(before, first)
  // Alone it would stand in for the scopes that the server gives when none is named.
  return offline && scopes.length > 0 ? union(scopes, ['offline_access']) : scopes
}
