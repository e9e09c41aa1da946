/** The tables of the reliability features, and what is wanted of them. */
import {
  type Cell,
  type CheckpointRow,
  type EventRow,
  figures,
  type KeyRow,
  type PlainRow,
  type ReferenceRow,
  type Results,
  type RollbackRow,
  type StateRow,
  type StreamRow,
  type TaskRow,
} from './results.ts'
import { missing, type Table, times } from './table.ts'

export function keyTable(rows: readonly KeyRow[]): Table {
  const speed = (cell: KeyRow['cells'][string] | undefined): string => {
    const found = figures(cell)
    if (found === undefined) return missing(cell) ?? '–'
    const cpu = found.cpuMicros === undefined ? '' : ` (${found.cpuMicros.toFixed(0)})`
    return `${Math.round(found.callsPerSecond).toLocaleString('en')}${cpu}`
  }
  const lines = rows.map(({ store, cells }) => {
    const { fresh, replay, raw } = cells
    const part = (figures(fresh)?.callsPerSecond ?? Number.NaN) / (figures(raw)?.callsPerSecond ?? Number.NaN)
    const calls = 1 / (figures(fresh)?.transactionsPerCall ?? Number.NaN)
    return [store, speed(fresh), speed(replay), Number.isNaN(calls) ? '–' : calls.toFixed(1), speed(raw), times(part)]
  })
  return [['', 'first time', 'given again', 'calls per sync', 'bare inserts', 'part of these'], ...lines]
}

export function plainTable(rows: readonly PlainRow[]): Table {
  const names = ['none again', 'all', 'beside']
  const ratio = (cell: PlainRow['cells'][string] | undefined): string =>
    missing(cell) ?? times(figures(cell)?.ratio ?? Number.NaN)
  const lines = rows.map(({ revision, cells }) => [
    revision,
    missing(cells.none) ?? `${figures(cells.none)?.cpuMicros.toFixed(1)}`,
    ...names.map(name => ratio(cells[name])),
  ])
  return [['', 'without, µs', 'the same again', 'with', 'beside a tool that uses them'], ...lines]
}

export function stateTable(rows: readonly StateRow[]): Table {
  const speed = (cell: StateRow['cells'][string] | undefined): string => {
    const found = figures(cell)
    if (found === undefined) return missing(cell) ?? '–'
    const { perSecond = Number.NaN, p99Ms, bytesPerCall = Number.NaN } = found
    return `${Math.round(perSecond).toLocaleString('en')} · ${p99Ms.toFixed(1)} (${Math.round(bytesPerCall / 1024).toLocaleString('en')})`
  }
  const names = ['get', 'set', 'patch', 'versions']
  const lines = rows.map(({ store, cells }) => [store, ...names.map(name => speed(cells[name])), span(cells.rollback)])
  return [['', 'get', 'set', 'patch', 'a version as a patch', 'going back'], ...lines]
}

export function rollbackTable(rows: readonly RollbackRow[]): Table {
  return [['', 'made', 'taken back'], ...rows.map(({ store, cells }) => [store, span(cells.steps), span(cells.rollback)])]
}

export function checkpointTable(rows: readonly CheckpointRow[]): Table {
  const lines = rows.map(({ store, checkpoints, equal, cells: { grow, move, parse } }) => {
    const rollbacks = figures(move)?.count ?? 0
    return [
      `${store}, ${checkpoints.toLocaleString('en')} checkpoints, ${rollbacks} rollbacks, ${equal} states as in the model`,
      span(grow),
      span(move),
      span(parse),
    ]
  })
  return [['', 'one more', 'moving the head', 'one JSON.parse'], ...lines]
}

/** One line for each figure that was promised, with the promise beside it. */
export function wantedTable({ plain, idempotency, references, checkpoints }: Results): Table {
  const lines: Table = []
  const add = (what: string, figure: number | undefined, wanted: string, met: (figure: number) => boolean): void => {
    if (figure === undefined || Number.isNaN(figure)) return
    const shown = figure >= 100 ? Math.round(figure).toLocaleString('en') : figure.toFixed(2)
    lines.push([what, shown, wanted, met(figure) ? 'yes' : 'no'])
  }
  const worst = (name: string): number | undefined =>
    plain.length === 0 ? undefined : Math.max(...plain.map(({ cells }) => figures(cells[name])?.ratio ?? Number.NaN))
  add('plain tool, CPU as a multiple', worst('all'), '≤ 1.05', ratio => ratio <= 1.05)
  add('plain tool beside one that uses them', worst('beside'), '≤ 1.05', ratio => ratio <= 1.05)
  const keyed = (store: string, cell: string) => figures(idempotency.find(row => row.store === store)?.cells[cell])
  const sqlite = keyed('sqlite', 'fresh')
  add('calls a second under keys, sqlite', sqlite?.callsPerSecond, '≥ 5,000', speed => speed >= 5_000)
  add('calls per sync, sqlite', sqlite?.transactionsPerCall && 1 / sqlite.transactionsPerCall, '≥ 8', calls => calls >= 8)
  const raw = keyed('postgres', 'raw')?.callsPerSecond ?? Number.NaN
  add(
    'part of bare inserts, postgres',
    (keyed('postgres', 'fresh')?.callsPerSecond ?? Number.NaN) / raw,
    '≥ 0.40',
    part => part >= 0.4,
  )
  for (const { what, bytes, cells } of references)
    add(
      `a reference of ${Math.round(bytes / 1024 ** 2)} MiB: growth of the ${what}, MiB`,
      figures(cells['references'])?.growthMb,
      '≤ 64',
      growth => growth <= 64,
    )
  const [book] = checkpoints
  const moved = (figures(book?.cells['move'])?.p99Ms ?? Number.NaN) / (figures(book?.cells['parse'])?.p50Ms ?? Number.NaN)
  add('moving the head, p99 as a multiple of one JSON.parse', moved, '≤ 3', multiple => multiple <= 3)
  return lines.length === 0 ? [] : [['', 'measured', 'wanted', 'met'], ...lines]
}

function span(cell: Cell<{ p50Ms?: number; p99Ms: number }> | undefined): string {
  const found = figures(cell)
  if (found === undefined) return missing(cell) ?? '–'
  return `${(found.p50Ms ?? Number.NaN).toFixed(2)}/${found.p99Ms.toFixed(2)}`
}

export function eventTable(rows: readonly EventRow[]): Table {
  const whole = (value: number): string => Math.round(value).toLocaleString('en')
  const shown = (cell: EventRow['cells'][string] | undefined): string => {
    const found = figures(cell)
    if (found === undefined) return missing(cell) ?? '–'
    return `${whole(found.emitsPerSecond)} · ${whole(found.deliveriesPerCpuSecond)} · ${found.p99Ms.toFixed(1)}`
  }
  const lines = rows.map(({ store, revision, subscribers, processes, cells: { floor, vivarium } }) => {
    const name = `${store} ${revision} ×${whole(subscribers)}${processes === 1 ? '' : ` in ${processes} processes`}`
    const [ours, least] = [vivarium, floor].map(cell => figures(cell)?.deliveriesPerCpuSecond ?? Number.NaN)
    return [name, shown(floor), shown(vivarium), times((ours ?? Number.NaN) / (least ?? Number.NaN))]
  })
  return [['', 'floor, one process', 'vivarium', 'part of the floor'], ...lines]
}

export function referenceTable(rows: readonly ReferenceRow[]): Table {
  const lines = rows.map(({ what, cells }) => {
    const found = figures(cells['references'])
    if (found === undefined) return [what, missing(cells['references']) ?? '–']
    const { beforeMb, growthMb, mbPerSecond, cpuSecondsPerGb } = found
    return [what, beforeMb.toFixed(0), `+${growthMb.toFixed(1)}`, mbPerSecond.toFixed(0), cpuSecondsPerGb.toFixed(2)]
  })
  return [['', 'before', 'growth', 'MiB/s', 'CPU s per GiB'], ...lines]
}

export function streamTable(rows: readonly StreamRow[]): Table {
  const lines = rows.map(({ way, cells }) => {
    const found = figures(cells['streaming'])
    if (found === undefined) return [way, missing(cells['streaming']) ?? '–']
    return [way, `${found.firstMs.toFixed(2)}/${found.firstP99Ms.toFixed(2)}`, found.wholeMs.toFixed(1)]
  })
  return [['', 'first chunk p50/p99', 'whole result p50'], ...lines]
}

export function taskTable(rows: readonly TaskRow[]): Table {
  const lines = rows.map(({ way, cells }) => {
    const found = figures(cells['tasks'])
    if (found === undefined) return [way, missing(cells['tasks']) ?? '–']
    const { cpuMicros, tasksPerSecond, p50Ms, p99Ms } = found
    return [way, cpuMicros.toFixed(0), Math.round(tasksPerSecond).toLocaleString('en'), `${p50Ms.toFixed(2)}/${p99Ms.toFixed(2)}`]
  })
  return [['', 'server CPU, µs', 'a second', 'p50/p99 ms'], ...lines]
}
