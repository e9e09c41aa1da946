/** A play whose server wants a token, and names an authorization server that the play opens beside it. */
import { type Answers, type Play, RUN, type Step } from '../play.ts'
import type { Seen } from '../seen.ts'
import type { Frame, Http } from '../stage/book.ts'
import type { Stage } from '../stage/open.ts'
import type { StageResponse } from '../stage/response.ts'
import { type Asked, type Authority, type AuthorityWishes, openAuthority } from './authority.ts'

/** One request to the server that is guarded, as far as its credentials go. */
export interface Knocked {
  readonly at: number
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** The method of the message in it. */
  readonly asks: string
  readonly tool: string
}

/** What a play has written down of a sign-in. */
export interface SignIn {
  readonly authority: Authority
  readonly resource: string
  readonly knocks: Knocked[]
}

/** What the guard says to a request; undefined: it is let in. */
export type Refuse = (knock: Knocked, token: string | undefined, about: SignIn) => Refused | undefined

export interface Refused {
  readonly status: number
  readonly challenge?: string
  readonly location?: string
}

export interface GuardWishes {
  readonly steps?: readonly Step[]
  readonly authority?: AuthorityWishes
  /** Where the metadata of the resource are. Default: where RFC 9728 puts them. */
  readonly metadataAt?: string
  /** Members of the metadata of the resource. */
  readonly metadata?: (origin: string) => Frame
  /** Further parameters of the challenge; `resource_metadata: false` leaves the address of the metadata out. */
  readonly challenge?: Readonly<Record<string, string | false>>
  /** Refuses more than who comes without a token. */
  readonly refuse?: Refuse
  readonly signIn?: Answers['signIn']
}

const key = 'sign-in'

export function guardedPlay(name: string, wishes: GuardWishes = {}): Play {
  const { steps = RUN, signIn = { way: 'code' } } = wishes
  return {
    name,
    steps,
    answers: { signIn },
    ms: 15_000,
    beside: async stage => {
      const authority = await openAuthority(() => stage.book.now, wishes.authority)
      stage.book.notes.set(key, { authority, resource: `${stage.origin}/mcp`, knocks: [] } satisfies SignIn)
      return authority
    },
    http: stage => (http, response, body) => guard(stage, wishes, http, response, body),
  }
}

/** What was seen of the sign-in. */
export function signInOf(seen: Pick<Seen, 'note'> | Stage): SignIn {
  const about = 'note' in seen ? seen.note<SignIn>(key) : (seen.book.notes.get(key) as SignIn | undefined)
  if (about === undefined) throw new Error('This play has no authorization server')
  return about
}

export function asksFor({ authority }: SignIn, path: RegExp): readonly Asked[] {
  return authority.asked.filter(asked => path.test(asked.path))
}

const pathOfMetadata = '/.well-known/oauth-protected-resource/mcp'

function guard(stage: Stage, wishes: GuardWishes, http: Http, response: StageResponse, body: string): boolean {
  const about = signInOf(stage)
  const path = http.path.split('?', 1)[0] ?? ''
  const { metadataAt = pathOfMetadata } = wishes
  const knock: Knocked = { at: stage.book.now, method: http.method, path: http.path, headers: http.headers, ...messageIn(body) }
  about.knocks.push(knock)
  if (path === metadataAt) {
    const told = {
      resource: about.resource,
      authorization_servers: [about.authority.issuer],
      bearer_methods_supported: ['header'],
    }
    const whole = { ...told, scopes_supported: ['mcp:use'], ...wishes.metadata?.(stage.origin) }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole))
    return true
  }
  if (path !== '/mcp') {
    response.writeHead(404).end()
    return true
  }
  const refused = refusal(stage, wishes, knock, about)
  if (refused === undefined) return false
  const { status, challenge, location } = refused
  response.writeHead(status, {
    ...(challenge === undefined ? {} : { 'www-authenticate': challenge }),
    ...(location === undefined ? {} : { location }),
  })
  response.end()
  return true
}

function refusal(stage: Stage, wishes: GuardWishes, knock: Knocked, about: SignIn): Refused | undefined {
  const token = bearerIn(knock.headers)
  if (token !== undefined && about.authority.scopeOf(token) !== undefined) return wishes.refuse?.(knock, token, about)
  const invalid = token === undefined ? {} : { error: 'invalid_token' }
  return { status: 401, challenge: challengeOf(stage, { ...wishes.challenge, ...invalid }, wishes.metadataAt) }
}

export function challengeOf(
  stage: Pick<Stage, 'origin'>,
  more: GuardWishes['challenge'] = {},
  metadataAt = pathOfMetadata,
): string {
  const parameters: NonNullable<GuardWishes['challenge']> = { resource_metadata: `${stage.origin}${metadataAt}`, ...more }
  const told = Object.entries(parameters).filter(([, value]) => value !== false)
  return `Bearer ${told.map(([name, value]) => `${name}="${value}"`).join(', ')}`
}

export function bearerIn(headers: Readonly<Record<string, string>>): string | undefined {
  return /^Bearer (.+)$/i.exec(headers['authorization'] ?? '')?.[1]
}

function messageIn(text: string): Pick<Knocked, 'asks' | 'tool'> {
  try {
    const { method, params } = JSON.parse(text) as { method?: unknown; params?: { name?: unknown } }
    return { asks: String(method ?? ''), tool: String(params?.name ?? '') }
  } catch {
    return { asks: '', tool: '' }
  }
}
