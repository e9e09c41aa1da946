/**
 * What a request aims at, and the scopes that single tools, resources and prompts need beyond what lets a caller in. `aimOf` is the one
 * place that reads a target out of params: scopes, grants, rules and handlers all ask it, so that what is allowed is what is done.
 */

import { problem } from '../../../core/problem.ts'
import { covers } from '../../../core/scope.ts'
import type { Conversation } from '../../../engine/conversation.ts'
import { type Asker, type Exchange, field } from '../../../engine/exchange.ts'
import { port } from '../../../engine/ports.ts'
import type { Caller, Carrier } from '../../../jsonrpc/connection.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Awaitable, Params } from '../../../jsonrpc/message.ts'

/** A grant that its holder presented with a request. */
export interface PresentedGrant {
  /** The key of the principal. */
  readonly owner: string
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly expires: number
  /** All that it allows now. */
  scopes(): Promise<readonly string[]>
}

/** The grant that let a request in, where its caller presented one: what is opened by the request ends with the grant. */
export const admission = field<PresentedGrant>()

/** Scopes that something needs; undefined: none are named. */
export type Scopes = readonly string[] | undefined

/** What grants add to what a token allows. */
export interface GrantedRights {
  /** Whether more than the token has a say in a request: then it is decided there. */
  decides(exchange: Exchange): boolean
  /** Whether a caller may hear of what has these scopes. */
  hears(asker: Asker, name: string, scopes: Scopes): Awaitable<boolean>
  /** Calls `ended` when a grant is over. Gives what to call when nobody cares any more. */
  lapses(admission: Pick<PresentedGrant, 'owner' | 'id'>, ended: (reason: string) => void): () => void
  /** The same for what a request has opened; undefined: no grant let it in. */
  listens(exchange: Exchange, ended: (reason: string, meta?: Params) => void): (() => void) | undefined
  /** Told which subscriptions of a conversation have ended with a grant. */
  lapsed(conversation: Conversation, uris: readonly string[], reason: string): void
}

/** What other features may use of authorization. */
export interface AuthorizationPort {
  /** Whether anything has scopes. */
  readonly declared: boolean
  /** Something with these scopes is offered. */
  declare(scopes: Scopes, what: string): void
  /** The scopes of what a request aims at. */
  needs(aim: RequestTarget): Scopes
  /** What was granted has a say, too. */
  grantsBy(rights: GrantedRights): void
  /** Undefined where nothing is granted here. */
  readonly rights: GrantedRights | undefined
}

/** What other features may use of authorization. */
export const authorizationPort = port<AuthorizationPort>('authorization')

/** Whoever started this process, or is part of it, needs no token for what the process may do. */
const local: ReadonlySet<Carrier> = new Set<Carrier>(['stdio', 'memory'])

/** Whether a caller has the scopes. Over a network nobody has any without authorization; locally only a principal with scopes is held to them, unless nobody is trusted. */
export function permits(caller: Caller, needed: Scopes, trusting = true): boolean {
  return needed === undefined || (trusting && isTrusted(caller)) || covers(caller.principal?.scopes, needed)
}

/** Whether a caller is held to no scopes at all. */
export function isTrusted({ carrier, principal }: Caller): boolean {
  return local.has(carrier) && principal?.scopes === undefined
}

/**
 * The step-up for a token that is too short: over HTTP a 403 whose challenge names the scopes to get, elsewhere an error with
 * the same scopes in its data.
 */
export function insufficient(scopes: readonly string[], { principal }: Caller, cause?: Error): McpError {
  const remedy =
    principal === undefined
      ? 'the server runs without authorization; serve it with auth: oauth({ … })'
      : 'request a token with these scopes from the authorization server'
  const lacking = scopes.filter(scope => principal?.scopes?.includes(scope) !== true)
  return new McpError('insufficient-scope', `This request requires the scopes ${scopes.join(' ')}; ${remedy}`, {
    data: { scopes },
    cause:
      cause ??
      problem('SCOPE_INSUFFICIENT', `This request requires the scopes ${scopes.join(' ')}`, {
        details: { missing_scopes: lacking },
        suggestion: `Request ${lacking.join(', ')}`,
        actor: 'user',
      }),
  })
}

/** The kind of the target, and the name or address by which the request asks for it. */
export type RequestTarget = readonly [kind: 'tool' | 'prompt' | 'resource' | 'template', name: string]

/** By method. Params are checked before: their shapes let no target be named twice. */
const readers: Readonly<Record<string, (params: Params) => RequestTarget>> = {
  'tools/call': ({ name }) => ['tool', name as string],
  'prompts/get': ({ name }) => ['prompt', name as string],
  'resources/read': ({ uri }) => ['resource', uri as string],
  'resources/subscribe': ({ uri }) => ['resource', uri as string],
  'completion/complete': ({ ref }) => referredTo(ref as Reference),
}

/** The methods that aim at something which may be guarded. */
export const aimingMethods: readonly string[] = Object.keys(readers)

/** What completion values are asked for. */
export type Reference =
  | { readonly type: 'ref/prompt'; readonly name: string }
  | { readonly type: 'ref/resource'; readonly uri: string }

/** What a reference of `completion/complete` points to. */
export function referredTo(ref: Reference): RequestTarget {
  return ref.type === 'ref/prompt' ? ['prompt', ref.name] : ['template', ref.uri]
}

/** Undefined for a method that aims at nothing by name. */
function aimAt(method: string, params: Params): RequestTarget | undefined {
  return Object.hasOwn(readers, method) ? readers[method]?.(params) : undefined
}

/** What a request is about, where it names a tool, resource, template or prompt. */
export function aimOf({ route, params }: Pick<Exchange, 'route' | 'params'>): RequestTarget | undefined {
  return aimAt(route.method.name, params)
}
