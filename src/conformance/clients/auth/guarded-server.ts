/** A play whose server wants a token, and names an authorization server that the play opens beside it. */
import type { Json } from '../../scenario.ts'
import type { HttpHead, HttpResponse } from '../log.ts'
import type { Observation } from '../observation.ts'
import { type Answers, type Play, play, type Step } from '../play.ts'
import type { ScriptedServer } from '../server.ts'
import { type Authority, type AuthorityOptions, type AuthorityRequest, openAuthority } from './authority.ts'

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
  if (about === undefined) throw new Error('This play has no authorization server')
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
  const request: GuardedRequest = { ...http, asks: methodIn(body), token }
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

function methodIn(text: string): string {
  try {
    return String((JSON.parse(text) as { method?: unknown }).method ?? '')
  } catch {
    return ''
  }
}
