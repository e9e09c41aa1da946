/** Places a graph of causes in columns: a cause always lies left of what came of it, and lines cross as little as two sweeps can reach. */

export interface CauseEdge {
  readonly from: string
  readonly to: string
}

export interface Place {
  readonly column: number
  /** From the top of its column, from 0. */
  readonly row: number
}

const sweeps = 4

/** The place of each node, by id. Edges to unknown nodes are ignored, and so are those that close a circle. */
export function placeCauses(ids: readonly string[], edges: readonly CauseEdge[]): ReadonlyMap<string, Place> {
  const known = new Set(ids)
  const used = edges.filter(({ from, to }) => from !== to && known.has(from) && known.has(to))
  const columnOf = columnsOf(ids, used)
  const columns: string[][] = []
  for (const id of ids) {
    const column = columnOf.get(id) ?? 0
    columns[column] = [...(columns[column] ?? []), id]
  }
  for (let sweep = 0; sweep < sweeps; sweep++) {
    const forward = sweep % 2 === 0
    for (const column of forward ? columns : columns.toReversed()) orderColumn(column, rowsOf(columns), used, forward)
  }
  const rows = rowsOf(columns)
  return new Map(ids.map(id => [id, { column: columnOf.get(id) ?? 0, row: rows.get(id) ?? 0 }]))
}

/** The length of the longest way to each node. */
function columnsOf(ids: readonly string[], edges: readonly CauseEdge[]): ReadonlyMap<string, number> {
  const causes = new Map<string, string[]>()
  for (const { from, to } of edges) causes.set(to, [...(causes.get(to) ?? []), from])
  const columns = new Map<string, number>()
  const under = new Set<string>()
  const visit = (id: string): number => {
    const done = columns.get(id)
    if (done !== undefined) return done
    under.add(id)
    const before = (causes.get(id) ?? []).filter(cause => !under.has(cause)).map(visit)
    under.delete(id)
    const column = Math.max(-1, ...before) + 1
    columns.set(id, column)
    return column
  }
  for (const id of ids) visit(id)
  return columns
}

function rowsOf(columns: readonly (readonly string[])[]): ReadonlyMap<string, number> {
  return new Map(columns.flatMap(column => column.map((id, row) => [id, row] as const)))
}

/** Sorts a column by the middle of its neighbours at one side; who has none there keeps the place. */
function orderColumn(column: string[], rows: ReadonlyMap<string, number>, edges: readonly CauseEdge[], causes: boolean): void {
  const weight = new Map(
    column.map((id, row) => {
      const near = edges
        .filter(({ from, to }) => (causes ? to : from) === id)
        .map(({ from, to }) => rows.get(causes ? from : to) ?? 0)
      return [id, near.length === 0 ? row : near.reduce((sum, each) => sum + each, 0) / near.length]
    }),
  )
  column.sort((a, b) => (weight.get(a) ?? 0) - (weight.get(b) ?? 0))
}
