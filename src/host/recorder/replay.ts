/**
 * Plays a recorded session again, against another policy, other servers or another model, and shows what came out differently. What
 * is not replaced comes from the recording: servers answer as they did, the model says what it said, and time is the time of then.
 */
import { readFile } from 'node:fs/promises'
import { type Clock, realClock } from '../../core/clock.ts'
import { canonicalJson } from '../../core/digest.ts'
import { problem } from '../../core/problem.ts'
import type { Carrier, Connection } from '../../jsonrpc/connection.ts'
import type { OnTurn } from '../loop/ports.ts'
import type { Turn } from '../loop/turn.ts'
import type { Attachment } from '../loop/user-input.ts'
import type { Model } from '../models/model.ts'
import { type RecordedLine, readLines, type TurnLine } from './lines.ts'
import { turnLine } from './record.ts'
import { type RecordedFrame, type ReplayedServer, replayedServer } from './replay-connection.ts'

/** What a host is opened with; take what is not to be replaced. */
export interface ReplayGiven {
  readonly servers: Readonly<Record<string, () => Connection>>
  readonly model: Model
  readonly clock: Clock
  readonly newId: () => string
  readonly onTurn: OnTurn
}

/** As much of a host as is needed to play. */
export interface ReplayHost {
  conversation(id: string): { send(text: string, options: { readonly attach: readonly Attachment[] }): Promise<Turn> }
  close(): Promise<void>
}

export interface ReplayOptions {
  /** Opens the host: `given => createHost({ ...given, policy: another })`. */
  readonly open: (given: ReplayGiven) => Promise<ReplayHost>
}

export interface Difference {
  /** `turn 2 of c1`, or the name of a server. */
  readonly where: string
  /** What differs: `answer`, `status`, `calls[0].status`, … */
  readonly what: string
  readonly before: unknown
  readonly after: unknown
}

export interface Replayed {
  readonly differences: readonly Difference[]
  /** Turns that were played. */
  readonly turns: number
}

export async function replay(file: string, { open }: ReplayOptions): Promise<Replayed> {
  const lines = readLines(await readFile(file, 'utf8'))
  const servers = serversOf(lines)
  const after: Turn[] = []
  const ids = lines.flatMap(line => (line.kind === 'id' ? [line.id] : []))
  const host = await open({
    servers: Object.fromEntries([...servers].map(([name, server]) => [name, server.open])),
    model: replayedModel(lines),
    clock: replayedClock(lines),
    newId: () => ids.shift() ?? crypto.randomUUID(),
    onTurn: turn => void after.push(turn),
  })
  try {
    for (const line of lines) {
      if (line.kind !== 'said') continue
      const turn = await host
        .conversation(line.conversation)
        .send(line.text, { attach: line.attach })
        .catch(() => undefined)
      await turn?.done.catch(() => undefined)
    }
    await Promise.all(after.map(turn => turn.done.catch(() => undefined)))
  } finally {
    await host.close()
  }
  const before = lines.flatMap(line => (line.kind === 'turn' ? [line.turn] : []))
  const now = after.map(turn => turnLine(turn))
  return { differences: [...turnDifferences(before, now), ...serverDifferences(servers)], turns: now.length }
}

function serversOf(lines: readonly RecordedLine[]): ReadonlyMap<string, ReplayedServer> {
  const connections = new Map<number, { readonly server: string; readonly carrier: Carrier; readonly frames: RecordedFrame[] }>()
  for (const line of lines) {
    if (line.kind === 'open') connections.set(line.connection, { server: line.server, carrier: line.carrier, frames: [] })
    if (line.kind === 'out' || line.kind === 'in')
      connections.get(line.connection)?.frames.push({ way: line.kind, frame: line.frame })
  }
  const names = new Set([...connections.values()].map(({ server }) => server))
  return new Map([...names].map(name => [name, replayedServer([...connections.values()].filter(one => one.server === name))]))
}

/** The same question gets the answer of then; another one the next that nobody has had. */
function replayedModel(lines: readonly RecordedLine[]): Model {
  const open = lines.flatMap(line => (line.kind === 'model' ? [line] : []))
  return {
    info: open[0]?.info ?? { id: 'recorded', vendor: 'vivarium', contextWindow: 200_000, capabilities: ['tools'] },
    async *generate(request) {
      const asked = canonicalJson(request)
      const same = open.findIndex(line => canonicalJson(line.request) === asked)
      const [line] = open.splice(Math.max(0, same), 1)
      if (line === undefined)
        throw problem('NOT_RECORDED', 'The model is asked more often than it was recorded', {
          suggestion: 'Give a model of its own for the replay',
        })
      yield* line.parts
      if (line.error !== undefined) throw problem(line.error.code, line.error.message)
    },
  }
}

/** Begins at the time of the recording and goes on at the pace of now. */
function replayedClock(lines: readonly RecordedLine[]): Clock {
  const ahead = realClock.now() - (lines[0]?.at ?? realClock.now())
  return { now: () => realClock.now() - ahead, setTimeout: realClock.setTimeout }
}

function turnDifferences(before: readonly TurnLine[], after: readonly TurnLine[]): readonly Difference[] {
  const key = ({ conversation, seq }: TurnLine): string => `turn ${seq} of ${conversation}`
  const now = new Map(after.map(turn => [key(turn), turn]))
  const found = before.flatMap(turn => {
    const other = now.get(key(turn))
    now.delete(key(turn))
    return compare(key(turn), '', turn, other)
  })
  return [...found, ...[...now].flatMap(([where, turn]) => compare(where, '', undefined, turn))]
}

/** The smallest parts that differ. */
function compare(where: string, what: string, before: unknown, after: unknown): readonly Difference[] {
  if (canonicalJson(before) === canonicalJson(after)) return []
  const inner = typeof before === 'object' && typeof after === 'object' && before !== null && after !== null
  if (!inner) return [{ where, what: what === '' ? 'turn' : what, before, after }]
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...names].flatMap(name => {
    const place = Array.isArray(before) ? `${what}[${name}]` : what === '' ? name : `${what}.${name}`
    return compare(where, place, (before as Record<string, unknown>)[name], (after as Record<string, unknown>)[name])
  })
}

function serverDifferences(servers: ReadonlyMap<string, ReplayedServer>): readonly Difference[] {
  return [...servers].flatMap(([where, server]) => {
    const { added, missing } = server.differences()
    return [
      ...added.map(method => ({ where, what: 'request', before: undefined, after: method })),
      ...missing.map(method => ({ where, what: 'request', before: method, after: undefined })),
    ]
  })
}
