/** Places the checkpoints of a tree in lanes, as logs of version control do: newest first, one line of descent to a lane. */

export interface LaneNode {
  readonly id: string
  readonly parent: string | null
}

/** One row: where its point lies, and which lines cross it. Numbers are lanes, from 0. */
export interface LaneRow {
  readonly lane: number
  /** Lanes of children: their lines come from above and end in the point. */
  readonly above: readonly number[]
  /** Lanes of others, which pass. */
  readonly through: readonly number[]
  /** A line goes on to the parent below. */
  readonly below: boolean
}

/** Further lanes share the last place: a row has to stay readable. */
export const mostLanes = 12

/** The rows of `nodes`, which are in order: every node before its parent. */
export function lanesOf(nodes: readonly LaneNode[]): readonly LaneRow[] {
  // For each lane the id whose point its line runs to.
  const open: (string | undefined)[] = []
  return nodes.map(({ id, parent }) => {
    const above: number[] = []
    const through: number[] = []
    for (const [lane, target] of open.entries()) {
      if (target === id) above.push(lane)
      else if (target !== undefined) through.push(lane)
    }
    const free = open.indexOf(undefined)
    const lane = above[0] ?? (free < 0 ? open.length : free)
    for (const ended of above) open[ended] = undefined
    open[lane] = parent ?? undefined
    while (open.length > 0 && open.at(-1) === undefined) open.pop()
    return { lane: shown(lane), above: unique(above), through: unique(through), below: parent !== null }
  })
}

function shown(lane: number): number {
  return Math.min(lane, mostLanes - 1)
}

function unique(lanes: readonly number[]): readonly number[] {
  return [...new Set(lanes.map(shown))]
}

/** A run of nodes without a branch, shown as one row. */
export interface FoldedRun<T> {
  readonly folded: readonly T[]
}

/** Fewer are not worth a fold. */
const fewest = 6

/**
 * The list with its runs folded: nodes with one child and the only child of their parent, next to each other. The first and the last of a
 * run stay, and so does every node for which `keep` is true.
 */
export function foldRuns<T extends LaneNode>(nodes: readonly T[], keep: (node: T) => boolean): readonly (T | FoldedRun<T>)[] {
  const children = new Map<string, number>()
  for (const { parent } of nodes) if (parent !== null) children.set(parent, (children.get(parent) ?? 0) + 1)
  const inner = nodes.map((node, at) => {
    const before = nodes[at - 1]
    const after = nodes[at + 1]
    const straight = before?.parent === node.id && node.parent === after?.id && after !== undefined
    return straight && children.get(node.id) === 1 && children.get(after.id) === 1 && !keep(node)
  })
  const shownRows: (T | FoldedRun<T>)[] = []
  for (let at = 0; at < nodes.length; ) {
    let end = at
    while (inner[end]) end++
    if (end - at >= fewest) shownRows.push({ folded: nodes.slice(at, end) })
    else shownRows.push(...nodes.slice(at, end))
    const next = nodes[end]
    if (next !== undefined) shownRows.push(next)
    at = end + 1
  }
  return shownRows
}
