/**
 * The state book of a host on SQLite: 5,000 checkpoints of a state of 1 MiB, grown by small patches, with 1,000 rollbacks to random
 * ones among them. After each the state is held against a model; what is timed is moving the head.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { realClock } from '../../src/core/clock.ts'
import { StateBook } from '../../src/host/state/book.ts'
import type { Options } from '../options.ts'
import { type CheckpointRow, failure } from '../results.ts'
import { median, quantile } from '../stats.ts'

interface Item {
  readonly id: number
  readonly title: string
  readonly done: boolean
  readonly tags: readonly string[]
}

const ITEMS = 8_192
const at = ['notes', 'notes.edit'] as const

/** About 1 MiB of JSON, of many small values as states are. */
function document(): { items: Item[] } {
  const item = (id: number): Item => ({ id, title: `Note ${id} `.padEnd(64, 'x'), done: false, tags: ['home', `t${id % 7}`] })
  return { items: Array.from({ length: ITEMS }, (_, id) => item(id)) }
}

export async function measureCheckpoints({ quick }: Options, row: (row: CheckpointRow) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'vivarium-bench-'))
  const { openStore } = await import('vivarium/stores')
  const store = await openStore(`sqlite:${join(folder, 'state.db')}`)
  try {
    const port = {
      holder: () => 'host' as const,
      rollsBack: () => true,
      ask: async (_: string, __: string, checkpoint: string) => ({ success: true, checkpoint }),
    }
    const book = new StateBook({ store, clock: realClock, port })
    const checkpoints = quick ? 60 : 5_000
    row({ store: 'sqlite', checkpoints, ...(await history(book, checkpoints)) })
  } catch (error) {
    row({ store: 'sqlite', checkpoints: 0, equal: 0, cells: { move: failure(error) } })
  } finally {
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What a checkpoint changed, on which one: enough to tell any state. */
interface Grown {
  readonly parent: number
  readonly at: number
  readonly title: string
}

async function history(book: StateBook, checkpoints: number): Promise<Pick<CheckpointRow, 'cells' | 'equal'>> {
  const random = seeded(42)
  const grown: Grown[] = [{ parent: -1, at: 0, title: '' }]
  await book.record(...at, { checkpoint: 'c0', parent: null, data: document() }, await book.before(...at))
  const grows: number[] = []
  const moves: number[] = []
  let [head, equal] = [0, 0]
  while (grown.length < checkpoints) {
    const index = Math.floor(random() * ITEMS)
    const title = `Changed by ${grown.length} `.padEnd(512, 'y')
    const id = grown.length
    const began = performance.now()
    const patch = [{ op: 'replace', path: `/items/${index}/title`, value: title }]
    const recorded = await book.record(...at, { checkpoint: `c${id}`, parent: `c${head}`, patch }, await book.before(...at))
    grows.push(performance.now() - began)
    if (!recorded.current) throw new Error(`c${id} is not the head: ${JSON.stringify(recorded.whys)}`)
    grown.push({ parent: head, at: index, title })
    head = id
    if (grown.length % 5 > 0) continue
    head = Math.floor(random() * grown.length)
    const moving = performance.now()
    const { success } = await book.rollback(...at, `c${head}`)
    moves.push(performance.now() - moving)
    const { state } = await book.before(...at)
    if (!success || !isDeepStrictEqual(state, expected(grown, head))) throw new Error(`The state at c${head} is another`)
    equal++
  }
  return { equal, cells: { grow: times(grows), move: times(moves), parse: times(parses()) } }
}

function expected(grown: readonly Grown[], head: number): unknown {
  const state = document()
  const changed = new Set<number>()
  for (let n = head; n > 0; ) {
    const { parent, at: index, title } = grown[n] as Grown
    const item = state.items[index]
    if (item !== undefined && !changed.has(index)) state.items[index] = { ...item, title }
    changed.add(index)
    n = parent
  }
  return state
}

function parses(): number[] {
  const text = JSON.stringify(document())
  return Array.from({ length: 200 }, () => {
    const began = performance.now()
    JSON.parse(text)
    return performance.now() - began
  })
}

function times(all: readonly number[]): { p50Ms: number; p99Ms: number; count: number } {
  return { p50Ms: median(all), p99Ms: quantile(all, 0.99), count: all.length }
}

/** The same numbers each time. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
