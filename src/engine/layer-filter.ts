/**
 * Which requests wake any layer at all. Most are plain calls of plain tools: to ask every layer about each of them would cost more
 * than the engine's own part of the way.
 */

import type { Params } from '../jsonrpc/message.ts'
import type { Exchange } from './exchange.ts'
import { type Method, NS } from './method.ts'
import type { Layer } from './stages.ts'

/** Names of targets that are remembered; callers make up as many as they like. */
const mostNames = 1_000

/** Whether any of the layers has anything to do with a request. */
export function layerFilter(layers: readonly Layer[], nameParam: Method['nameParam']): (exchange: Exchange) => boolean {
  const named = nameParam === 'name'
  // What a request aims at is remembered only where it has a name.
  const hinted = layers.filter(({ marked, concerns }) => (concerns === undefined ? marked === true : named))
  const others = layers.filter(layer => !hinted.includes(layer))
  if (hinted.length === 0) return exchange => some(others, exchange)
  const concerned = concerning(hinted)
  return exchange => {
    if (some(others, exchange)) return true
    if (exchange.carried === undefined && !isMarked(exchange.meta) && !(named && concerned(exchange))) return false
    return some(hinted, exchange)
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
