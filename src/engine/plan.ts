/**
 * Routes compiled when a wire is first spoken: per wire one Map from the name on the wire to a function that already has its layers.
 * What a wire does not have is absent, so "method not found" needs no code of its own.
 */
import type { Caller } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { clip } from '../jsonrpc/limits.ts'
import type { Params } from '../jsonrpc/message.ts'
import { type Peer, type Revision, stepsDown, stepsUp, type VersionStep } from '../revisions/index.ts'
import type { ConversationSlot } from './conversation.ts'
import { extensionGate } from './extensions.ts'
import { type Method, type PeerRole, wireName } from './method.ts'
import { compose, type Handler, type Layer, type StageRunner } from './stages.ts'

/** One side of a feature: what it answers, what it wraps, what it says of itself. */
export interface Side {
  readonly handlers?: readonly (readonly [Method, GatedHandler | Handler['execute']])[]
  readonly layers?: readonly Layer[]
  /** Capabilities that this side declares to a peer at this revision; `caller` is who asks, and `peer` what it said of itself, where that is known. */
  capabilities?(revision: Revision, caller?: Caller, peer?: Peer): Readonly<Record<string, unknown>>
  /** What it remembers of a conversation, where other processes may go on with that. */
  readonly memories?: readonly ConversationSlot<unknown>[]
  /** Numbers for the feature's own failure kinds: canonical first, other wires by id. */
  readonly errors?: ErrorNumbers
}

type ErrorNumbers = Readonly<Record<string, Readonly<Record<string, number>> & { readonly default: number }>>

/** How one method is handled on one wire. */
export interface Route {
  readonly method: Method
  readonly name: string
  readonly revision: Revision
  readonly run: StageRunner
  readonly resultDown: VersionStep | undefined
  readonly paramsUp: VersionStep | undefined
  /** False while the capability behind the method is not offered. */
  readonly offered: (() => boolean) | undefined
  readonly recover: Handler['recover']
  readonly finish: Handler['finish']
  readonly failureResult: Handler['failureResult']
}

/** A handler that exists only while its capability is offered. */
export interface GatedHandler extends Handler {
  readonly offered?: () => boolean
}

/** The routes of one role, by wire and name. */
export class Plan {
  readonly #role: PeerRole
  readonly #sides: readonly Side[]
  readonly #middleware: readonly Layer[]
  /** Compiled when a wire is first spoken: most servers hear one or two. */
  readonly #routes: (Table | undefined)[] = []
  readonly #last: (Route | undefined)[] = []
  readonly errors: ReadonlyMap<string, Readonly<Record<string, number>>>

  constructor(role: PeerRole, sides: readonly Side[], middleware: readonly Layer[]) {
    this.#role = role
    this.#sides = sides
    this.#middleware = middleware
    this.errors = new Map(sides.flatMap(side => Object.entries(side.errors ?? {})))
  }

  /** What answers a request of this name. */
  route(revision: Revision, name: string): Route | undefined {
    // Callers mostly repeat themselves, and comparing is cheaper than hashing a string that was just parsed.
    const last = this.#last[revision.ordinal]
    const route = last?.name === name ? last : this.#table(revision).request.get(name)
    if (route !== undefined) this.#last[revision.ordinal] = route
    return route === undefined || route.offered?.() === false ? undefined : route
  }

  /** What hears a notification of this name. */
  notificationRoute(revision: Revision, name: string): Route | undefined {
    return this.#table(revision).notification.get(name)
  }

  #table(revision: Revision): Table {
    let table = this.#routes[revision.ordinal]
    if (table === undefined) {
      table = this.#compile(revision)
      this.#routes[revision.ordinal] = table
    }
    return table
  }

  #compile(revision: Revision): Table {
    const tables = { request: new Map<string, Route>(), notification: new Map<string, Route>() }
    const layers = this.#sides.flatMap(side => side.layers ?? []).filter(layer => layer.in?.includes(revision.id) ?? true)
    for (const [method, given] of this.#sides.flatMap(side => side.handlers ?? [])) {
      if (!method.in.includes(revision.id) || (method.to !== this.#role && method.to !== 'both')) continue
      const handler: GatedHandler = typeof given === 'function' ? { execute: given } : given
      const wraps = method.kind === 'notification' ? [] : layers.filter(layer => layer.methods?.includes(method.name) ?? true)
      const name = wireName(method, revision)
      const table = tables[method.kind]
      if (table.has(name)) throw new Error(`Two features answer ${name} at ${revision.id}`)
      table.set(name, {
        method,
        name,
        revision,
        run: compose(
          handler,
          method.kind === 'notification' ? [] : [...gates(method), ...this.#middleware, ...wraps],
          method.nameParam,
        ),
        resultDown: stepsDown(method.resultDown, revision),
        paramsUp: stepsUp(method.paramsUp, revision),
        offered: handler.offered,
        recover: handler.recover?.bind(handler),
        finish: handler.finish?.bind(handler),
        failureResult: handler.failureResult?.bind(handler),
      })
    }
    return tables
  }
}

function gates({ extension }: Method): readonly Layer[] {
  return extension === undefined ? [] : [extensionGate(extension)]
}

/** By kind, so that a request where a notification belongs is as unknown as any other. */
type Table = Readonly<Record<Method['kind'], ReadonlyMap<string, Route>>>

/** unknown → typed params: the wire's steps up, then the one check. */
export function openParams(route: Route, params: Params | undefined): Params {
  const wire = params ?? empty
  const canonical = route.paramsUp === undefined ? wire : route.paramsUp(wire)
  const fault = route.method.params.check(canonical)
  if (fault !== undefined) {
    const where = fault.path === '' ? 'params' : `params.${clip(fault.path)}`
    throw new McpError('invalid-params', `${where} must be ${fault.expected}`)
  }
  return canonical
}

const empty: Params = {}
