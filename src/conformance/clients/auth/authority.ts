/**
 * An authorization server that signs everybody in at once: its page sends the visitor straight back. It writes down all it is asked,
 * and does one thing wrong where a play says so.
 */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { objectIn, parsedJson } from '../../expectations.ts'
import type { Json } from '../../scenario.ts'
import { listenHere } from '../../wire/http-call.ts'
import { headOf } from '../carriers.ts'
import type { HttpHead, HttpResponse, Observation } from '../log.ts'
import { type Answers, type Play, play, type Step } from '../play.ts'
import type { ScriptedServer } from '../server.ts'

/** How it differs from one that does everything right. */
interface AuthorityOptions {
  /** Path of its issuer: below it nothing is found at the first places where metadata may be. Default: none. */
  readonly tenant?: string
  /** Where its metadata are, as the path of the request. Default: where RFC 8414 puts them. */
  readonly metadataAt?: string
  /** Members of its metadata; undefined takes one away. */
  readonly metadata?: Json
  /** What it sends back with the code, beside the state; `state` in it takes the place of the right one. */
  readonly sendsBack?: Readonly<Record<string, string>>
}

/** One request to it; its path has no query. */
export interface AuthorityRequest extends HttpHead {
  readonly at: number
  readonly query: Readonly<Record<string, string>>
  /** Of a form, or of JSON. */
  readonly body: Json
  readonly text: string
}

/** The server while a play runs. */
interface Authority {
  readonly issuer: string
  readonly origin: string
  readonly requests: readonly AuthorityRequest[]
  /** Whether it has given out this access token, and for which scope. */
  scopeOf(token: string): string | undefined
  close(): Promise<void>
}

const most = 500
const mostBytes = 256 * 1024

/** Listens on this machine; `now` says when a request came. */
export async function openAuthority(now: () => number, options: AuthorityOptions = {}): Promise<Authority> {
  const requests: AuthorityRequest[] = []
  const tokens = new Map<string, string>()
  const codes = new Map<string, Json>()
  const server = createServer((request, response) => {
    response.on('error', () => {})
    readRequest(request, now()).then(
      one => {
        if (requests.length < most) requests.push(one)
        answer(one, response, { issuer, options, tokens, codes })
      },
      () => response.destroy(),
    )
  })
  const { origin, close } = await listenHere(server)
  const issuer = `${origin}${options.tenant ?? ''}`
  return {
    issuer,
    origin,
    requests,
    scopeOf: token => tokens.get(token),
    close,
  }
}

async function readRequest(request: IncomingMessage, at: number): Promise<AuthorityRequest> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > mostBytes) throw new Error('The token request is too large')
    chunks.push(chunk)
  }
  const text = Buffer.concat(chunks).toString()
  const head = headOf(request)
  const [path = '/', query = ''] = head.path.split('?', 2)
  const isJson = String(head.headers['content-type']).startsWith('application/json')
  return { ...head, at, path, query: formOf(query), body: isJson ? objectIn(parsedJson(text)) : formOf(text), text }
}

function formOf(text: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(text))
}

interface AuthorityState {
  readonly issuer: string
  readonly options: AuthorityOptions
  readonly tokens: Map<string, string>
  /** What was asked for, by the code that was given for it. */
  readonly codes: Map<string, Json>
}

function answer(request: AuthorityRequest, response: ServerResponse, state: AuthorityState): void {
  const { issuer, options } = state
  const { tenant = '', metadataAt = `/.well-known/oauth-authorization-server${tenant}` } = options
  const { path, method, body } = request
  if (path === metadataAt) return json(response, 200, { ...metadata(issuer), ...options.metadata })
  // A public client, whatever it wished for: it has no secret to keep.
  const registered = { client_id: 'registered-client', token_endpoint_auth_method: 'none', client_id_issued_at: 0 }
  if (path === `${tenant}/register` && method === 'POST') return json(response, 201, { ...body, ...registered })
  if (path === `${tenant}/authorize`) return sendBack(request, response, state)
  if (path === `${tenant}/token` && method === 'POST') return giveToken(request, response, state)
  json(response, 404, { error: 'not_found' })
}

function metadata(issuer: string): Json {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    registration_endpoint: `${issuer}/register`,
    response_types_supported: ['code'],
    grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
    token_endpoint_auth_methods_supported: ['none', 'client_secret_basic', 'client_secret_post'],
    code_challenge_methods_supported: ['S256'],
    scopes_supported: ['mcp:use', 'mcp:call', 'offline_access'],
    // OpenID discovery demands these, and a client may look at them.
    jwks_uri: `${issuer}/jwks`,
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
  }
}

function sendBack({ query }: AuthorityRequest, response: ServerResponse, { options, codes }: AuthorityState): void {
  const { redirect_uri: uri = '', state } = query
  if (!URL.canParse(uri)) return json(response, 400, { error: 'invalid_request' })
  const code = `code-${codes.size + 1}`
  codes.set(code, query)
  const back = new URL(uri)
  const sent = { code, ...(state === undefined ? {} : { state }), ...options.sendsBack }
  for (const [name, value] of Object.entries(sent)) back.searchParams.set(name, value)
  response.writeHead(302, { location: back.href }).end()
}

function giveToken({ body }: AuthorityRequest, response: ServerResponse, { codes, tokens }: AuthorityState): void {
  const { grant_type: grant, code, code_verifier: verifier } = body
  const authorized = codes.get(String(code))
  if (grant === 'authorization_code') {
    codes.delete(String(code))
    const challenge = createHash('sha256').update(String(verifier)).digest('base64url')
    if (authorized === undefined || authorized['code_challenge'] !== challenge)
      return json(response, 400, { error: 'invalid_grant', error_description: 'The code does not match this verifier' })
  } else if (grant !== 'refresh_token' && grant !== 'client_credentials')
    return json(response, 400, { error: 'unsupported_grant_type' })
  const scope = String(authorized?.['scope'] ?? body['scope'] ?? 'mcp:use')
  const token = `token-${tokens.size + 1}`
  tokens.set(token, scope)
  const refresh = grant === 'client_credentials' ? {} : { refresh_token: `refresh-${tokens.size}` }
  json(response, 200, { access_token: token, token_type: 'Bearer', expires_in: 3600, scope, ...refresh })
}

function json(response: ServerResponse, status: number, value: Json): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' }).end(JSON.stringify(value))
}

// ── A play whose server wants a token, and names an authorization server that the play opens beside it.

/** One request to the server that is guarded, as far as its credentials go. */
interface GuardedRequest extends HttpHead {
  /** The method of the message in it. */
  readonly asks: string
  /** The token that it brings. */
  readonly token: string | undefined
}

/** What a play has shown of a sign-in. */
export interface SignIn {
  readonly authority: Authority
  readonly resource: string
  /** To the server that is guarded. */
  readonly requests: GuardedRequest[]
}

/** How the guard answers a request that it does not let in. */
interface GuardResponse {
  readonly status: number
  /** Parameters of the challenge. */
  readonly challenge?: Readonly<Record<string, string | false>>
  readonly location?: string
}

interface GuardOptions {
  readonly steps?: readonly Step[]
  readonly authority?: AuthorityOptions
  /** Where the metadata of the resource are. Default: where RFC 9728 puts them. */
  readonly metadataAt?: string
  /** Members of the metadata of the resource. */
  readonly metadata?: Json
  /** Further parameters of the challenge; `resource_metadata: false` leaves the address of the metadata out. */
  readonly challenge?: GuardResponse['challenge']
  /** Refuses more than who comes without a token. */
  readonly refuse?: (request: GuardedRequest, about: SignIn) => GuardResponse | undefined
  readonly signIn?: Answers['signIn']
}

const note = 'sign-in'

/** A server with a guard before it. */
export function guardedPlay(name: string, options: GuardOptions = {}): Play {
  const { steps, signIn = { way: 'code' } } = options
  return play(name, {
    ...(steps === undefined ? {} : { steps }),
    answers: { signIn },
    ms: 15_000,
    beside: async ({ log, origin }) => {
      const authority = await openAuthority(() => log.now, options.authority)
      log.notes.set(note, { authority, resource: `${origin}/mcp`, requests: [] } satisfies SignIn)
      return authority
    },
    http: server => (http, response, body) => guard(server, options, http, response, body),
  })
}

/** What was seen of the sign-in. */
export function signInOf({ log }: Pick<Observation, 'log'>): SignIn {
  const about = log.notes.get(note) as SignIn | undefined
  if (about === undefined) throw new Error('This scenario has no authorization server')
  return about
}

/** What the authorization server was asked at such a path. */
export function askedFor({ authority }: SignIn, path: RegExp): readonly AuthorityRequest[] {
  return authority.requests.filter(request => path.test(request.path))
}

function guard(server: ScriptedServer, options: GuardOptions, http: HttpHead, response: HttpResponse, body: string): boolean {
  const { metadataAt = '/.well-known/oauth-protected-resource/mcp' } = options
  const about = signInOf(server)
  const { authority, resource } = about
  const token = /^Bearer (.+)$/i.exec(http.headers['authorization'] ?? '')?.[1]
  const request: GuardedRequest = { ...http, asks: String(objectIn(parsedJson(body))['method'] ?? ''), token }
  about.requests.push(request)
  const path = http.path.split('?', 1)[0]
  if (path === metadataAt) {
    const told = { resource, authorization_servers: [authority.issuer], bearer_methods_supported: ['header'] }
    const whole = { ...told, scopes_supported: ['mcp:use'], ...options.metadata }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole))
    return true
  }
  if (path !== '/mcp') {
    response.writeHead(404).end()
    return true
  }
  const known = token !== undefined && authority.scopeOf(token) !== undefined
  const invalid = token === undefined ? {} : { error: 'invalid_token' }
  const refused: GuardResponse | undefined = known
    ? options.refuse?.(request, about)
    : { status: 401, challenge: { ...options.challenge, ...invalid } }
  if (refused === undefined) return false
  const { status, challenge, location } = refused
  const parameters: GuardResponse['challenge'] = { resource_metadata: `${server.origin}${metadataAt}`, ...challenge }
  const told = Object.entries(parameters)
    .filter(([, value]) => value !== false)
    .map(([name, value]) => `${name}="${value}"`)
  response.writeHead(status, {
    ...(challenge === undefined ? {} : { 'www-authenticate': `Bearer ${told.join(', ')}` }),
    ...(location === undefined ? {} : { location }),
  })
  response.end()
  return true
}
