/** What the bench measures, as `--json` writes it. */
import type { Carrier } from './contenders.ts'
import type { Revision, WorkName } from './work.ts'

/** A cell holds figures, or says why it has none. */
export type Cell<Figures> = Figures | { failed: string }

export interface ServerFigures {
  /** Server CPU per request in microseconds, median over the rounds. */
  cpuMicros: number
  cpuSecondsPer1000: number
  /** Median of the ratios to the floor, each taken within one round. */
  ratio: number
  ratios: number[]
  requestsPerSecond: number
  p50Ms: number
  p99Ms: number
  rssMb: number
  answerBytes: number
}

export interface ServerRow {
  carrier: Carrier
  revision: Revision
  work: WorkName
  cells: Record<string, Cell<ServerFigures>>
}

export interface ColdRow {
  carrier: Carrier
  opening: 'initialize' | 'discover'
  cells: Record<string, Cell<{ ms: number; ratio: number; all: number[] }>>
}

export interface SessionFigures {
  heapBytes: number
  rssBytes: number
}

export interface SessionRow {
  sessions: number
  cells: Record<string, Cell<SessionFigures>>
}

export interface ClientRow {
  carrier: Carrier
  revision: Revision
  inFlight: number
  cells: Record<string, Cell<{ cpuMicros: number; ratio: number; ratios: number[]; callsPerSecond: number }>>
}

/** In-process calls under idempotency keys: done for the first time, given again, and what the store's own database makes bare. */
export interface KeyRow {
  store: string
  cells: Record<string, Cell<{ callsPerSecond: number; cpuMicros?: number; transactionsPerCall?: number }>>
}

/** One answer with the manifest of 500 tools, in this process. */
export interface ManifestRow {
  way: 'anew' | 'kept bytes' | 'not modified'
  cells: Record<string, Cell<{ cpuMicros: number; bytes: number }>>
}

/** What a plain tool costs on a server with all features, with a tool beside it that uses them, and without any. */
export interface PlainRow {
  revision: Revision
  cells: Record<string, Cell<{ cpuMicros: number; ratio: number; ratios: number[] }>>
}

/** A state of 1 MiB: calls on it, and a tree of its versions. */
export interface StateRow {
  store: string
  cells: Record<string, Cell<{ perSecond?: number; p50Ms?: number; p99Ms: number; bytesPerCall?: number }>>
}

/** A transaction of ten steps: making them, and taking them back. */
export interface RollbackRow {
  store: string
  cells: Record<string, Cell<{ p50Ms: number; p99Ms: number }>>
}

/** Checkpoints of a state of 1 MiB: growing by one, moving the head, and reading the document once for comparison. */
export interface CheckpointRow {
  store: string
  checkpoints: number
  /** After how many of the rollbacks the state was that of the model; one that is not ends the run. */
  equal: number
  cells: Record<string, Cell<{ p50Ms: number; p99Ms: number; count: number }>>
}

export interface EventFigures {
  emitsPerSecond: number
  /** Of all servers together. */
  deliveriesPerCpuSecond: number
  p99Ms: number
}

/** Events emitted in one process and delivered over HTTP, by that one or by several. */
export interface EventRow {
  store: string
  revision: Revision
  subscribers: number
  processes: number
  cells: Record<string, Cell<EventFigures>>
}

/** A large content by reference between two servers: what each has before, and how much it grows at most. */
export interface ReferenceRow {
  bytes: number
  what: string
  cells: Record<string, Cell<{ beforeMb: number; growthMb: number; mbPerSecond: number; cpuSecondsPerGb: number }>>
}

/** A result in chunks: from the call to the first of them, and to the end. */
export interface StreamRow {
  way: string
  cells: Record<string, Cell<{ firstMs: number; firstP99Ms: number; wholeMs: number }>>
}

export interface TaskFigures {
  /** Server CPU per task, with all requests that concern it. */
  cpuMicros: number
  tasksPerSecond: number
  p50Ms: number
  p99Ms: number
}

/** Short tasks over HTTP, from the call to the result. */
export interface TaskRow {
  way: Revision
  cells: Record<string, Cell<TaskFigures>>
}

export interface GatewayKillFigures {
  /** Calls of the server that was not killed: those that went well, and those that did not. */
  otherFine: number
  otherFailed: number
  /** Calls of the killed one that failed and said whose server is down. */
  told: number
  /** From its return to its first call that went well. */
  backMs: number
  /** What the server itself took to start. */
  startMs: number
}

/** A gateway: its CPU per call beside that of the server asked directly, its memory before many servers, a server killed. */
export interface GatewayRow {
  what: string
  cells: Record<string, Cell<{ micros: number; direct: number; ratio: number } | { rssMb: number } | GatewayKillFigures>>
}

/** The web console of a gateway, one figure a row. */
export interface ConsoleRow {
  what: string
  unit: string
  /** The most that is wanted. */
  most: number
  cells: Record<'console', Cell<{ value: number }>>
}

export interface Results {
  node: string
  when: string
  quick: boolean
  notes: string[]
  server: ServerRow[]
  cold: ColdRow[]
  sessions: SessionRow[]
  clients: ClientRow[]
  idempotency: KeyRow[]
  manifest: ManifestRow[]
  plain: PlainRow[]
  state: StateRow[]
  rollback: RollbackRow[]
  checkpoints: CheckpointRow[]
  events: EventRow[]
  references: ReferenceRow[]
  streaming: StreamRow[]
  tasks: TaskRow[]
  gateway: GatewayRow[]
  console: ConsoleRow[]
}

export const failure = (error: unknown): { failed: string } => ({
  failed: error instanceof Error ? error.message : String(error),
})

/** Figures of a cell that has them. */
export function figures<Figures extends object>(cell: Cell<Figures> | undefined): Figures | undefined {
  return cell === undefined || 'failed' in cell ? undefined : (cell as Figures)
}
