/** The routes of states: sets, checkpoints, content, differences, rollback. */

import { Problem } from '../../core/problem.ts'
import type { TreeNode } from '../../host/state/book.ts'
import type { PatchStep, StateNode, StateSetRow } from '../contract/state.ts'
import { ConsoleFailure } from '../failure.ts'
import { paged, pageOf, positionOf, slice } from '../query.ts'
import type { AgentSource } from './agent.ts'
import { whyOf } from './rows.ts'
import { type HostTable, nothing } from './table.ts'

type Names = Readonly<Record<string, string>>

const mostContent = 4_000_000
const mostSteps = 5_000

/** The routes of states. */
export function stateRoutes({ host }: AgentSource): HostTable {
  const treeOf = async ({ server = '', set = '' }: Names): Promise<readonly TreeNode[]> => {
    const known = (await host.state.sets()).some(each => each.server === server && each.featureSet === set)
    if (known) return host.state.tree(server, set)
    throw new ConsoleFailure('NOT_FOUND', 'There is no state of this feature set.', 'Reload the list of states.')
  }
  return {
    'GET /state': {
      ...nothing,
      role: 'viewer',
      query: paged,
      answer: async ({ query }) => {
        const sets = [...(await host.state.sets())].sort(
          (one, other) => one.server.localeCompare(other.server) || one.featureSet.localeCompare(other.featureSet),
        )
        const { items, ...rest } = slice(sets, pageOf(query))
        return { items: await Promise.all(items.map(each => setRow(each))), ...rest }
      },
    },
    'GET /state/:server/:set/tree': {
      ...nothing,
      role: 'viewer',
      query: paged,
      answer: async ({ names, query }) => {
        const all = await treeOf(names)
        const { after, limit } = pageOf(query)
        // Counted from the oldest, so that a page stays the same page while newer ones come.
        const below = after === undefined ? all.length : Math.min(all.length, positionOf(after))
        const from = Math.max(0, below - limit)
        const items: readonly StateNode[] = all.slice(from, below).reverse()
        return from > 0 ? { items, next: String(from) } : { items }
      },
    },
    'GET /state/:server/:set/at': {
      ...nothing,
      role: 'viewer',
      query: { checkpoint: 'text' },
      answer: async ({ names, query, whole }) => {
        await treeOf(names)
        const checkpoint = given(query['checkpoint'], 'checkpoint')
        const value = await stored(host.state.at(names['server'] ?? '', names['set'] ?? '', checkpoint))
        const { length } = JSON.stringify(value) ?? 'null'
        return { checkpoint, length, ...(whole && length <= mostContent && { value }) }
      },
    },
    'GET /state/:server/:set/diff': {
      ...nothing,
      role: 'viewer',
      query: { from: 'text', to: 'text' },
      answer: async ({ names, query, whole }) => {
        await treeOf(names)
        const [from, to] = [given(query['from'], 'from'), given(query['to'], 'to')]
        const all = (await stored(host.state.diff(names['server'] ?? '', names['set'] ?? '', from, to))) as readonly PatchStep[]
        const steps = all.slice(0, mostSteps)
        return { from, to, steps: whole ? steps : steps.map(({ value: _, ...step }) => step), count: all.length }
      },
    },
    'POST /state/:server/:set/rollback': {
      ...nothing,
      role: 'operator',
      body: { to: 'text' },
      writes: true,
      answer: async ({ names, body }) => {
        await treeOf(names)
        const { why, ...outcome } = await host.state.rollback(names['server'] ?? '', names['set'] ?? '', String(body['to']))
        return { ...outcome, ...(why !== undefined && { why: whyOf(why) }) }
      },
    },
  }

  async function setRow({ server, featureSet }: { readonly server: string; readonly featureSet: string }): Promise<StateSetRow> {
    const nodes = await host.state.tree(server, featureSet)
    const head = nodes.find(({ current }) => current)?.checkpoint
    const last = nodes.at(-1)?.at
    const rollsBack = host.server(server)?.live?.featureSets.get(featureSet)?.rollback === true
    return {
      ...{ server, featureSet, checkpoints: nodes.length, rollsBack },
      ...(head !== undefined && { head }),
      ...(last !== undefined && { last }),
    }
  }
}

function given(value: string | number | undefined, member: string): string {
  if (value !== undefined) return String(value)
  throw new ConsoleFailure('INVALID_INPUT', `${member} is missing.`, 'Give the id of a checkpoint.', { member })
}

/** The content of a checkpoint that is not stored is nothing that the page can ask for. */
async function stored<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    throw new ConsoleFailure('NOT_FOUND', error.message, error.suggestion ?? 'Choose another checkpoint.')
  }
}
