/**
 * The normative order in which a call passes through its layers. One list; features hang layers on its stages.
 * A handler's own parts stand at resolve, validate and execute; an author's middleware wraps them all at enter.
 */
import { type Awaitable, isThenable, type Params } from '../jsonrpc/message.ts'
import type { RevisionId } from '../revisions/index.ts'
import { completeResult, type Exchange, retryState } from './exchange.ts'
import { type Method, NS } from './method.ts'

const stages = [
  'enter',
  'resolve',
  'unseal',
  'validate',
  // May the caller do this at all?
  'decide',
  // Was it done before? Then its outcome is given again, and nothing below happens.
  'replay',
  // Is there somebody who has to say yes first?
  'oblige',
  // Is there enough left to pay for it?
  'budget',
  // What it is part of learns that it begins, before it does.
  'record',
  'execute',
] as const
/** A place in the order of layers. */
export type Stage = (typeof stages)[number]

/** Runs what a layer wraps. */
export type Next = () => Awaitable<unknown>

/** Wraps everything from its stage on: both the way in and the way out. */
export interface Layer {
  readonly stage: Stage
  /** Absent: every request. */
  readonly methods?: readonly string[]
  /** The wires on which it has anything to do. Absent: every one. */
  readonly in?: readonly RevisionId[]
  /** A cheap look at whether the layer has anything to do; a request that no layer wants is handled without them. */
  when?(exchange: Exchange): boolean
  // Hints: with any of them `when` is asked only of requests for which one of the hints of some layer holds.
  /** `when` is true of requests that carry something of ours in `_meta`, or continue one that did. */
  readonly marked?: true
  /** `when` is true of requests that have one of these params. */
  readonly params?: readonly string[]
  /** `when` is true of requests that have one of these headers, on carriers with headers of their own for each request. */
  readonly headers?: readonly string[]
  /** `when` is true of what this names. Depends on nothing but the method and the name of what it aims at. */
  concerns?(exchange: Exchange): boolean
  run(exchange: Exchange, next: Next): Awaitable<unknown>
}

/** What answers a method. The parts before `execute` are separate so that layers can stand between them. */
export interface Handler {
  resolve?(exchange: Exchange): void
  validate?(exchange: Exchange): Awaitable<void>
  execute(exchange: Exchange): Awaitable<unknown>
  /** Makes the result of what `execute` gave. Apart from it, so that nobody waits twice for one promise. */
  finish?(exchange: Exchange, value: unknown): Awaitable<unknown>
  /** Makes the result of what `execute` threw, or throws on. Comes with `finish`. */
  failureResult?(exchange: Exchange, error: unknown): unknown
  /** Turns a failure of any stage into a result, where the wire reports it that way. */
  recover?(exchange: Exchange, error: unknown): unknown
}

/** Runs a request through its layers and its handler. */
export type StageRunner = (exchange: Exchange) => Awaitable<unknown>

/** Composes once per wire. Where no layer has anything to do, the handler is called directly. */
export function compose(handler: Handler, layers: readonly Layer[], nameParam?: Method['nameParam']): StageRunner {
  const direct = bare(handler)
  if (layers.length === 0) return direct
  const wrapped = wrap(handler, layers)
  if (layers.some(layer => layer.when === undefined)) return wrapped
  const wakes = layerFilter(layers, nameParam)
  return exchange => (wakes(exchange) ? wrapped(exchange) : direct(exchange))
}

/** Leaves the finish to whoever runs it: the exchange says that its value is raw. */
function bare(handler: Handler): StageRunner {
  const { resolve, validate } = handler
  const raw = handler.finish !== undefined
  const execute: StageRunner = exchange => {
    exchange.raw = raw
    return handler.execute(exchange)
  }
  if (resolve === undefined && validate === undefined) return execute
  return exchange => {
    resolve?.call(handler, exchange)
    const checked = validate?.call(handler, exchange)
    return isThenable(checked) ? checked.then(() => execute(exchange)) : execute(exchange)
  }
}

/** Executes to the end, for layers that must see what came of it. */
function whole(handler: Handler): StageRunner {
  const { finish, failureResult } = handler
  if (finish === undefined || failureResult === undefined)
    return exchange => {
      exchange.begun = true
      const value = handler.execute(exchange)
      return isThenable(value) ? value.then(done => completed(exchange, done)) : completed(exchange, value)
    }
  return async exchange => {
    exchange.begun = true
    let value: unknown
    try {
      value = await handler.execute(exchange)
    } catch (error) {
      return failureResult.call(handler, exchange, error)
    }
    return completed(exchange, await finish.call(handler, exchange, value))
  }
}

/** The result, completed by what the handler touched. */
export function completed(exchange: Exchange, result: unknown): Awaitable<unknown> {
  const complete = exchange.get(completeResult)
  exchange.given = result
  if (complete === undefined) return result
  exchange.set(completeResult, undefined)
  return complete(result)
}

interface Link {
  readonly when?: Layer['when']
  run(exchange: Exchange, next: Next): Awaitable<unknown>
}

function wrap(handler: Handler, layers: readonly Layer[]): StageRunner {
  const links = linksOf(handler, layers)
  const execute = whole(handler)
  // Links that have nothing to do are passed over in one loop: guards are always there, and most of them sleep.
  const from = (exchange: Exchange, start: number): Awaitable<unknown> => {
    for (let at = start; at < links.length; at++) {
      const link = links[at] as Link
      if (link.when?.(exchange) !== false) return link.run(exchange, () => from(exchange, at + 1))
    }
    return execute(exchange)
  }
  return exchange => from(exchange, 0)
}

function linksOf(handler: Handler, layers: readonly Layer[]): readonly Link[] {
  const { resolve, validate } = handler
  const links: Link[] = []
  for (const stage of stages) {
    // A handler's own part comes first at its stage: layers there may rely on it.
    if (stage === 'resolve' && resolve !== undefined) {
      links.push({
        run: (exchange, next) => {
          resolve.call(handler, exchange)
          return next()
        },
      })
    }
    if (stage === 'validate' && validate !== undefined) {
      links.push({
        run: (exchange, next) => {
          const checked = validate.call(handler, exchange)
          return isThenable(checked) ? checked.then(next) : next()
        },
      })
    }
    links.push(...layers.filter(layer => layer.stage === stage))
  }
  return links
}

// Which requests wake any layer at all. Most are plain calls of plain tools: to ask every layer about each of them would cost more
// than the engine's own part of the way.

/** Names of targets that are remembered; callers make up as many as they like. */
const mostNames = 1_000

/** Whether any of the layers has anything to do with a request. */
export function layerFilter(layers: readonly Layer[], nameParam: Method['nameParam']): (exchange: Exchange) => boolean {
  const named = nameParam === 'name'
  // What a request aims at is remembered only where it has a name.
  const isHinted = (layer: Layer): boolean =>
    layer.concerns === undefined ? layer.marked === true || layer.params !== undefined || layer.headers !== undefined : named
  const hinted = layers.filter(isHinted)
  const others = layers.filter(layer => !isHinted(layer))
  if (hinted.length === 0) return exchange => some(others, exchange)
  const concerned = concerning(hinted)
  const params = [...new Set(hinted.flatMap(layer => layer.params ?? []))]
  const headers = [...new Set(hinted.flatMap(layer => layer.headers ?? []))]
  return exchange => {
    if (others.length > 0 && some(others, exchange)) return true
    let hint = exchange.get(retryState) !== undefined || isMarked(exchange.meta) || (named && concerned(exchange))
    for (const param of params) hint ||= exchange.params[param] !== undefined
    // Headers of a handshake say nothing of a request.
    if (headers.length > 0 && exchange.caller.carrier === 'http')
      for (const header of headers) hint ||= exchange.caller.header?.(header) !== undefined
    return hint && some(hinted, exchange)
  }
}

function some(layers: readonly Layer[], exchange: Exchange): boolean {
  for (const layer of layers) if (layer.when?.(exchange) === true) return true
  return false
}

/** Remembers by name: a change of what is offered makes a new plan, and so a new memory. */
function concerning(layers: readonly Layer[]): (exchange: Exchange) => boolean {
  const asking = layers.filter(({ concerns }) => concerns !== undefined)
  const known = new Map<unknown, boolean>()
  return exchange => {
    const name = exchange.params['name']
    const before = known.get(name)
    if (before !== undefined) return before
    const found = asking.some(({ concerns }) => concerns?.(exchange) === true)
    if (known.size >= mostNames) known.clear()
    known.set(name, found)
    return found
  }
}

function isMarked(meta: Params | undefined): boolean {
  for (const key in meta) if (key.startsWith(NS)) return true
  return false
}
