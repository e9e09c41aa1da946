/**
 * Records a host session into one file (frames, clock, model requests and answers, user input, turns), and replays it. The file contains
 * everything in clear text: protect it like the conversation itself.
 */
import { type Clock, realClock } from '../../core/clock.ts'
import { canonicalJson } from '../../core/digest.ts'
import { problem } from '../../core/problem.ts'
import { classify } from '../../features/reliability/problem/classify.ts'
import type { Connection } from '../../jsonrpc/connection.ts'
import { differencesOf } from '../../recording/difference.ts'
import type { HostLine } from '../../recording/format.ts'
import { recordedServer } from '../../recording/mock-server.ts'
import { connectionsOf, openRecording, type RecordingText } from '../../recording/read.ts'
import { recordConnection } from '../../recording/tap.ts'
import { RecordingWriter, type RecordOptions } from '../../recording/writer.ts'
import type { LoopOptions } from '../loop/loop.ts'
import type { OnTurn } from '../loop/ports.ts'
import type { Turn } from '../loop/turn.ts'
import type { Attachment } from '../loop/user-input.ts'
import type { Model, ModelPart } from '../models/model.ts'

/** A recording in progress. */
export interface Recorder {
  /** For the connect option `wrap` of this server. */
  wrap(server: string): (connection: Connection) => Connection
  /** The same model, recorded. */
  model(model: Model): Model
  /** Generates ids and records them. */
  readonly newId: () => string
  /** Records turns; for the option `onTurn`. */
  readonly onTurn: OnTurn
  /** Resolves when everything is written. */
  close(): Promise<void>
}

/**
 * Opens a recording; replaces an existing file, and throws where it cannot be written.
 * @example const recorder = openRecorder('session.jsonl')
 */
export function openRecorder(file: string, options: Omit<RecordOptions, 'target'> = {}): Recorder {
  const writer = new RecordingWriter(file, options)
  const turns = new Set<Promise<unknown>>()
  writer.begin()
  return {
    wrap: server => connection => recordConnection(connection, writer, server),
    model: model => recordedModel(model, writer),
    newId: () => {
      const id = crypto.randomUUID()
      writer.note({ kind: 'id', id })
      return id
    },
    onTurn: (turn, { attach, resumed }) => {
      const { conversation, text } = turn
      if (text !== null && !resumed) writer.note({ kind: 'said', conversation, text, attach })
      const note = (): void => writer.note({ kind: 'turn', turn: turnLine(turn) })
      const ended = turn.done.then(note, note)
      turns.add(ended)
      void ended.finally(() => turns.delete(ended))
    },
    close: async () => {
      await Promise.all(turns)
      writer.close()
    },
  }
}

/** The loop options that a recorder wraps. */
type RecordedOptions = Pick<LoopOptions, 'model' | 'newId' | 'onTurn'>

/** The same options, such that what the loop does with them is recorded. */
export function recordedOptions<O extends RecordedOptions>(recorder: Recorder, options: O): O {
  const { model, onTurn } = options
  const both: OnTurn = (turn, said) => {
    recorder.onTurn(turn, said)
    onTurn?.(turn, said)
  }
  const [first, ...rest] = Array.isArray(model) ? (model as readonly [Model, ...Model[]]) : [model as Model]
  const models: readonly [Model, ...Model[]] = [recorder.model(first), ...rest.map(one => recorder.model(one))]
  return { ...options, model: models, newId: recorder.newId, onTurn: both }
}

/** Records each request with its parts, also where it fails. */
function recordedModel(model: Model, writer: RecordingWriter): Model {
  return {
    ...model,
    async *generate(request, options) {
      const parts: ModelPart[] = []
      try {
        for await (const part of model.generate(request, options)) {
          parts.push(part)
          yield part
        }
        writer.note({ kind: 'model', info: model.info, request, parts })
      } catch (error) {
        const { code, message } = classify(error)
        writer.note({ kind: 'model', info: model.info, request, parts, error: { code, message } })
        throw error
      }
    },
  }
}

type TurnLine = ReturnType<typeof turnLine>

/** A turn without what differs from run to run; used to compare two runs. */
function turnLine(turn: Turn) {
  const { conversation, seq, text, status, answer, why } = turn
  return {
    ...{ conversation, seq, text, status },
    ...(answer !== undefined && { answer }),
    ...(why !== undefined && { why }),
    calls: turn.calls.map(({ server, tool, arguments: args, outcome }) => ({
      ...(server !== undefined && { server }),
      tool,
      arguments: args,
      ...(outcome !== undefined && { status: outcome.status, content: outcome.content }),
    })),
    hooks: turn.hooks.map(({ server, hook, outcome }) => ({ server, hook, outcome })),
    prompt: (turn.prompt?.sections ?? []).map(({ from, namespace, tokens }) => ({
      from,
      tokens,
      ...(namespace !== undefined && { namespace }),
    })),
  }
}

// Replay: runs a recorded session with another policy, server or model and reports the differences. Everything else comes from the recording:
// answers of servers, output of the model, and the time.

/** Options for the replayed host; override what should be replaced. */
export interface ReplayGiven {
  /** Servers that answer as they did in the recording, by name. */
  readonly servers: Readonly<Record<string, () => Connection>>
  /** A model that answers as it did in the recording. */
  readonly model: Model
  /** A clock that shows the time of the recording. */
  readonly clock: Clock
  /** Returns the ids of the recording, in order. */
  readonly newId: () => string
  /** Compares the turns that events start. */
  readonly onTurn: OnTurn
}

/** The part of a host that a replay needs. */
export interface ReplayHost {
  /** Returns the conversation with this name. */
  conversation(id: string): {
    /** Sends a message of the recording. */
    send(
      text: string,
      options: {
        /** The attachments of the message. */
        readonly attach: readonly Attachment[]
      },
    ): Promise<Turn>
  }
  /** Closes the host. */
  close(): Promise<void>
}

/** Options of a replay. */
export interface ReplayOptions {
  /** Opens the host: `given => createHost({ ...given, policy: another })`. */
  readonly open: (given: ReplayGiven) => Promise<ReplayHost>
}

/** A difference between the runs. */
export interface Difference {
  /** `turn 2 of c1`, or the name of a server. */
  readonly where: string
  /** What differs: `answer`, `status`, `calls[0].status`, … */
  readonly what: string
  /** The value in the recording. */
  readonly before: unknown
  /** The value in the replay. */
  readonly after: unknown
}

/** The result of a replay. */
export interface Replayed {
  /** What differs from the recording. Empty if nothing does. */
  readonly differences: readonly Difference[]
  /** Replayed turns. */
  readonly turns: number
}

/** Replays the turns of a recording in the host that `open` opens, and reports the differences. */
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

/** The lines of one kind. */
function linesOf<K extends HostLine['kind']>({ lines }: RecordingText, kind: K): Extract<HostLine, { kind: K }>[] {
  return lines.filter((line): line is Extract<HostLine, { kind: K }> => line.kind === kind)
}

/** The recorded servers by name. */
function serversOf(recording: RecordingText): ReadonlyMap<string, ReturnType<typeof recordedServer>> {
  const connections = Map.groupBy(connectionsOf(recording), ({ server }) => server)
  return new Map(
    [...connections].map(([server, recorded]) => {
      if (server === undefined)
        throw new TypeError('This file is not a recording of a host: its connections do not name a server')
      return [server, recordedServer(recorded)]
    }),
  )
}

/** A model that gives the recorded answer to the same request, otherwise the next unused one. */
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
        throw problem('NOT_RECORDED', 'The replay calls the model more often than the recording does', {
          suggestion: 'Pass a model for the replay',
        })
      yield* line.parts as readonly ModelPart[]
      if (line.error !== undefined) throw problem(line.error.code, line.error.message)
    },
  }
}

/** A clock that starts at the time of the recording and runs at normal speed. */
function replayedClock({ header }: RecordingText): Clock {
  const ahead = realClock.now() - Date.parse(header.began)
  return { now: () => realClock.now() - ahead, setTimeout: realClock.setTimeout }
}

/** Differences of turns, matched by conversation and number. */
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

/** The differences of one turn. */
function compare(where: string, before: TurnLine | undefined, after: TurnLine | undefined): readonly Difference[] {
  // Through JSON, as in the file, where undefined members are absent.
  const [then, now] = [before, after].map(turn => (turn === undefined ? undefined : JSON.parse(JSON.stringify(turn))))
  return differencesOf(then, now).map(({ path, ...values }) => ({ where, what: path === '' ? 'turn' : path, ...values }))
}

/** Requests that were added or are missing, by server. */
function serverDifferences(servers: ReadonlyMap<string, ReturnType<typeof recordedServer>>): readonly Difference[] {
  return [...servers].flatMap(([where, server]) => {
    const { added, missing } = server.differences()
    return [
      ...added.map(method => ({ where, what: 'request', before: undefined, after: method })),
      ...missing.map(method => ({ where, what: 'request', before: method, after: undefined })),
    ]
  })
}
