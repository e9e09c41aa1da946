/**
 * Plays a recorded session again, against another policy, other servers or another model, and shows what came out differently. What
 * is not replaced comes from the recording: servers answer as they did, the model says what it said, and time is the time of then.
 */
import { type Clock, realClock } from '../../core/clock.ts'
import { canonicalJson } from '../../core/digest.ts'
import { problem } from '../../core/problem.ts'
import type { Connection } from '../../jsonrpc/connection.ts'
import { differencesOf } from '../../recording/difference.ts'
import type { HostLine } from '../../recording/format.ts'
import { type RecordedServer, recordedServer } from '../../recording/mock-server.ts'
import { connectionsOf, openRecording, type RecordingText } from '../../recording/read.ts'
import type { OnTurn } from '../loop/ports.ts'
import type { Turn } from '../loop/turn.ts'
import type { Attachment } from '../loop/user-input.ts'
import type { Model, ModelPart } from '../models/model.ts'
import { type TurnLine, turnLine } from './record.ts'

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

/** How a recording is replayed. */
export interface ReplayOptions {
  /** Opens the host: `given => createHost({ ...given, policy: another })`. */
  readonly open: (given: ReplayGiven) => Promise<ReplayHost>
}

/** What came out differently. */
export interface Difference {
  /** `turn 2 of c1`, or the name of a server. */
  readonly where: string
  /** What differs: `answer`, `status`, `calls[0].status`, … */
  readonly what: string
  readonly before: unknown
  readonly after: unknown
}

/** What came of a replay. */
export interface Replayed {
  readonly differences: readonly Difference[]
  /** Turns that were played. */
  readonly turns: number
}

/** Plays the turns of a recording again in the host that `open` opens, and tells what came out differently. */
export async function replay(file: string, { open }: ReplayOptions): Promise<Replayed> {
  const recording = await openRecording(file)
  const servers = serversOf(recording)
  const after: Turn[] = []
  const ids = linesOf(recording, 'id').map(({ id }) => id)
  const host = await open({
    servers: Object.fromEntries([...servers].map(([name, server]) => [name, server.open])),
    model: replayedModel(recording),
    clock: replayedClock(recording),
    newId: () => ids.shift() ?? crypto.randomUUID(),
    onTurn: turn => void after.push(turn),
  })
  try {
    for (const { conversation, text, attach } of linesOf(recording, 'said')) {
      const turn = await host
        .conversation(conversation)
        .send(text, { attach: attach as readonly Attachment[] })
        .catch(() => undefined)
      await turn?.done.catch(() => undefined)
    }
    await Promise.all(after.map(turn => turn.done.catch(() => undefined)))
  } finally {
    await host.close()
  }
  const before = linesOf(recording, 'turn').map(({ turn }) => turn as TurnLine)
  const now = after.map(turn => turnLine(turn))
  return { differences: [...turnDifferences(before, now), ...serverDifferences(servers)], turns: now.length }
}

function linesOf<K extends HostLine['kind']>({ lines }: RecordingText, kind: K): Extract<HostLine, { kind: K }>[] {
  return lines.filter((line): line is Extract<HostLine, { kind: K }> => line.kind === kind)
}

function serversOf(recording: RecordingText): ReadonlyMap<string, RecordedServer> {
  const connections = Map.groupBy(connectionsOf(recording), ({ server }) => server)
  return new Map(
    [...connections].map(([server, recorded]) => {
      if (server === undefined) throw new TypeError('This is no recording of a host: its connections name no server')
      return [server, recordedServer(recorded)]
    }),
  )
}

/** The same question gets the answer of then; another one the next that nobody has had. */
function replayedModel(recording: RecordingText): Model {
  const open = linesOf(recording, 'model')
  return {
    info: (open[0]?.info as Model['info'] | undefined) ?? {
      id: 'recorded',
      vendor: 'vivarium',
      contextWindow: 200_000,
      capabilities: ['tools'],
    },
    async *generate(request) {
      const asked = canonicalJson(request)
      const same = open.findIndex(line => canonicalJson(line.request) === asked)
      const [line] = open.splice(Math.max(0, same), 1)
      if (line === undefined)
        throw problem('NOT_RECORDED', 'The model is asked more often than it was recorded', {
          suggestion: 'Give a model of its own for the replay',
        })
      yield* line.parts as readonly ModelPart[]
      if (line.error !== undefined) throw problem(line.error.code, line.error.message)
    },
  }
}

/** Begins at the time of the recording and goes on at the pace of now. */
function replayedClock({ header }: RecordingText): Clock {
  const ahead = realClock.now() - Date.parse(header.began)
  return { now: () => realClock.now() - ahead, setTimeout: realClock.setTimeout }
}

function turnDifferences(before: readonly TurnLine[], after: readonly TurnLine[]): readonly Difference[] {
  const key = ({ conversation, seq }: TurnLine): string => `turn ${seq} of ${conversation}`
  const now = new Map(after.map(turn => [key(turn), turn]))
  const found = before.flatMap(turn => {
    const other = now.get(key(turn))
    now.delete(key(turn))
    return compare(key(turn), turn, other)
  })
  return [...found, ...[...now].flatMap(([where, turn]) => compare(where, undefined, turn))]
}

function compare(where: string, before: TurnLine | undefined, after: TurnLine | undefined): readonly Difference[] {
  // As it is in the file, where what is undefined is not there.
  const [then, now] = [before, after].map(turn => (turn === undefined ? undefined : JSON.parse(JSON.stringify(turn))))
  return differencesOf(then, now).map(({ path, ...values }) => ({ where, what: path === '' ? 'turn' : path, ...values }))
}

function serverDifferences(servers: ReadonlyMap<string, RecordedServer>): readonly Difference[] {
  return [...servers].flatMap(([where, server]) => {
    const { added, missing } = server.differences()
    return [
      ...added.map(method => ({ where, what: 'request', before: undefined, after: method })),
      ...missing.map(method => ({ where, what: 'request', before: method, after: undefined })),
    ]
  })
}
