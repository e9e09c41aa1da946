/** Prints what was measured as tables a person can read. */
import { consoleTable, gatewayTable } from './report-gateway.ts'
import {
  checkpointTable,
  eventTable,
  keyTable,
  plainTable,
  referenceTable,
  rollbackTable,
  stateTable,
  streamTable,
  taskTable,
  wantedTable,
} from './report-reliability.ts'
import {
  type Cell,
  type CheckpointRow,
  type ClientRow,
  type ColdRow,
  type ConsoleRow,
  type EventRow,
  figures,
  type GatewayRow,
  type KeyRow,
  type ManifestRow,
  type PlainRow,
  type ReferenceRow,
  type Results,
  type RollbackRow,
  type ServerFigures,
  type ServerRow,
  type SessionRow,
  type StateRow,
  type StreamRow,
  type TaskRow,
} from './results.ts'
import { missing, render, type Table, times } from './table.ts'

export function report(results: Results): string {
  const parts: string[] = []
  const add = (title: string, table: Table): void => {
    if (table.length > 1) parts.push(`${title}\n${render(table)}`)
  }
  add('Server CPU per request, as a multiple of the floor', ratioTable(results.server))
  add('Requests per second · p50/p99 ms', speedTable(results.server))
  add('Resident memory after the echo row, MB', memoryTable(results.server))
  add('Cold start to the first answer, ms (multiple of the floor)', coldTable(results.cold))
  add('Idle session after garbage collection, kB of heap (kB of RSS)', sessionTable(results.sessions))
  add('Client CPU per echo call, as a multiple of a raw client', clientTable(results.clients))
  add('Calls a second (CPU of this process per call, µs) under idempotency keys, 64 in flight', keyTable(results.idempotency))
  add('The manifest of 500 tools: CPU of one answer, µs', manifestTable(results.manifest))
  add(
    'CPU per call of a tool that uses no reliability feature, as a multiple of a server without them',
    plainTable(results.plain),
  )
  add(
    'A state of 1 MiB: per second · p99 ms (kB written each); going back among 1,000 versions, p50/p99 ms',
    stateTable(results.state),
  )
  add('A transaction of 10 steps, p50/p99 ms', rollbackTable(results.rollback))
  add('Checkpoints of a state of 1 MiB, p50/p99 ms', checkpointTable(results.checkpoints))
  add('Wanted of the reliability features', wantedTable(results))
  add(
    'Events delivered over HTTP: emitted a second · deliveries per CPU second of the servers (part of the floor) · p99 ms',
    eventTable(results.events),
  )
  add('A data reference between two servers: resident memory of each process, MiB', referenceTable(results.references))
  add('A result of 20 chunks, 5 ms apart, at the client, ms', streamTable(results.streaming))
  add('A short task over HTTP, from the call to its result, 8 at a time', taskTable(results.tasks))
  add('A gateway before other servers, HTTP on both sides, 32 in flight, rules and audit on', gatewayTable(results.gateway))
  add('The web console of a gateway, in a real browser on loopback', consoleTable(results.console))
  const failed = failures(results)
  if (failed.length > 0) parts.push(`Failed\n${failed.map(line => `  ${line}`).join('\n')}`)
  return parts.join('\n\n')
}

/** Cells that have no figures because something went wrong, one line each. */
export function failures(results: Results): string[] {
  const groups = {
    server: results.server,
    cold: results.cold,
    sessions: results.sessions,
    clients: results.clients,
    idempotency: results.idempotency,
    manifest: results.manifest,
    plain: results.plain,
    state: results.state,
    rollback: results.rollback,
    checkpoints: results.checkpoints,
    events: results.events,
    references: results.references,
    streaming: results.streaming,
    tasks: results.tasks,
    gateway: results.gateway,
    console: results.console,
  }
  return Object.entries(groups).flatMap(([section, rows]) =>
    rows.flatMap(row =>
      Object.entries<Cell<object>>(row.cells).flatMap(([name, cell]) =>
        'failed' in cell ? [`${section} ${label(row)}: ${name}: ${cell.failed}`] : [],
      ),
    ),
  )
}

type ReliabilityRow =
  | (KeyRow | ManifestRow | PlainRow | StateRow | RollbackRow)
  | (CheckpointRow | EventRow | ReferenceRow | StreamRow | TaskRow | GatewayRow | ConsoleRow)
type AnyRow = ServerRow | ColdRow | SessionRow | ClientRow | ReliabilityRow

function label(row: AnyRow): string {
  if ('way' in row) return row.way
  if ('what' in row) return row.what
  if ('subscribers' in row) return `${row.store} ${row.revision} ×${row.subscribers}`
  if ('store' in row) return row.store
  if ('work' in row) return `${row.carrier} ${row.revision} ${row.work}`
  if ('opening' in row) return `${row.carrier} ${row.opening}`
  if ('inFlight' in row) return `${row.carrier} ${row.revision} ×${row.inFlight}`
  return 'sessions' in row ? `${row.sessions} sessions` : row.revision
}

function ratioTable(rows: readonly ServerRow[]): Table {
  const names = others(rows, 'floor')
  const head = ['', 'floor µs', ...names, 'sdk-v2 / vivarium']
  return [head, ...rows.map(row => [label(row), fixed(row.cells.floor, 'cpuMicros'), ...ratios(row, names)])]
}

function clientTable(rows: readonly ClientRow[]): Table {
  const names = others(rows, 'raw')
  const head = ['', 'raw µs', ...names, 'sdk-v2 / vivarium']
  return [head, ...rows.map(row => [label(row), fixed(row.cells.raw, 'cpuMicros'), ...ratios(row, names)])]
}

function manifestTable(rows: readonly ManifestRow[]): Table {
  const lines = rows.map(({ way, cells: { manifest } }) => {
    const found = figures(manifest)
    return found === undefined ? [way, '–', '–'] : [way, found.cpuMicros.toFixed(1), found.bytes.toLocaleString('en')]
  })
  return [['', 'µs', 'bytes'], ...lines]
}

function ratios(row: { cells: Record<string, Cell<{ ratio: number }>> }, names: readonly string[]): string[] {
  const ratio = (name: string): number => figures(row.cells[name])?.ratio ?? Number.NaN
  return [...names.map(name => missing(row.cells[name]) ?? times(ratio(name))), times(ratio('sdk-v2') / ratio('vivarium'))]
}

function speedTable(rows: readonly ServerRow[]): Table {
  const names = ['floor', ...others(rows, 'floor')]
  const cell = (value: ServerFigures): string =>
    `${Math.round(value.requestsPerSecond).toLocaleString('en')} · ${value.p50Ms.toFixed(1)}/${value.p99Ms.toFixed(1)}`
  return filled(rows, names, cell)
}

function memoryTable(rows: readonly ServerRow[]): Table {
  const echoes = rows.filter(row => row.work === 'echo')
  return filled(echoes, ['floor', ...others(echoes, 'floor')], (value: ServerFigures) => value.rssMb.toFixed(0))
}

function coldTable(rows: readonly ColdRow[]): Table {
  const names = ['floor', ...others(rows, 'floor')]
  return filled(rows, names, (value: { ms: number; ratio: number }) => `${value.ms.toFixed(0)} (${times(value.ratio)})`)
}

function sessionTable(rows: readonly SessionRow[]): Table {
  const kilo = (bytes: number): string => (bytes / 1024).toFixed(2)
  const names = ['floor', ...others(rows, 'floor')]
  return filled(
    rows,
    names,
    (value: { heapBytes: number; rssBytes: number }) => `${kilo(value.heapBytes)} (${kilo(value.rssBytes)})`,
  )
}

function filled<Figures extends object, Row extends ServerRow | ColdRow | SessionRow>(
  rows: readonly (Row & { cells: Record<string, Cell<Figures>> })[],
  names: readonly string[],
  show: (value: Figures) => string,
): Table {
  const cell = (row: { cells: Record<string, Cell<Figures>> }, name: string): string => {
    const value = figures(row.cells[name])
    return value === undefined ? (missing(row.cells[name]) ?? '–') : show(value)
  }
  return [['', ...names], ...rows.map(row => [label(row), ...names.map(name => cell(row, name))])]
}

const ORDER = ['sdk-v1', 'sdk-v2', 'mcp-lite', 'vivarium', 'vivarium-json']

/** Who appears in these rows, the yardstick left out; always in the same order, ours last. */
function others(rows: readonly { cells: object }[], yardstick: string): string[] {
  const names = new Set(rows.flatMap(row => Object.keys(row.cells)))
  names.delete(yardstick)
  return [...names].sort((a, b) => ORDER.indexOf(a) - ORDER.indexOf(b))
}

function fixed(cell: Cell<{ cpuMicros: number }> | undefined, key: 'cpuMicros'): string {
  return missing(cell) ?? figures(cell)?.[key].toFixed(1) ?? '–'
}
