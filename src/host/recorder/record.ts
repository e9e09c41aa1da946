/**
 * Records a session of a host into one file: every frame of every server, the clock, what the model was asked and said, what users
 * said and what came of it. The file holds all of that in the open: keep it as you would keep the conversation itself.
 */
import type { Clock } from '../../core/clock.ts'
import type { Why } from '../../core/suggestion.ts'
import { classify } from '../../features/reliability/problem/classify.ts'
import type { Connection } from '../../jsonrpc/connection.ts'
import { recordConnection } from '../../recording/record.ts'
import { RecordingWriter, type RecordOptions } from '../../recording/writer.ts'
import type { LoopOptions } from '../loop/loop.ts'
import type { OnTurn } from '../loop/ports.ts'
import type { Turn } from '../loop/turn.ts'
import type { Model, ModelPart } from '../models/model.ts'

/** A host's session that is being recorded. */
export interface Recorder {
  /** For the option `wrap` of connections to this server. */
  wrap(server: string): (connection: Connection) => Connection
  /** The same model, overheard. */
  model(model: Model): Model
  readonly newId: () => string
  readonly onTurn: OnTurn
  /** Resolves when all is written. */
  close(): Promise<void>
}

/**
 * Opens the file of a recording. Takes the place of a file of that name, and throws where it cannot be written.
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

/** The options of a loop that a recorder listens in on. */
type RecordedOptions = Pick<LoopOptions, 'model' | 'newId' | 'onTurn'>

/** Undefined where there is no file: nothing is recorded then. */
export function recorderFor(file: string | undefined, clock: Clock): Recorder | undefined {
  return file === undefined ? undefined : openRecorder(file, { clock })
}

/** The same options, recorded where there is a recorder. */
export function recordedOptions(recorder: Recorder | undefined, { model, newId, onTurn }: RecordedOptions): RecordedOptions {
  if (recorder === undefined) return { model, ...(newId && { newId }), ...(onTurn && { onTurn }) }
  const both: OnTurn = (turn, said) => {
    recorder.onTurn(turn, said)
    onTurn?.(turn, said)
  }
  const [first, ...rest] = Array.isArray(model) ? (model as readonly [Model, ...Model[]]) : [model as Model]
  const models: readonly [Model, ...Model[]] = [recorder.model(first), ...rest.map(one => recorder.model(one))]
  return { model: models, newId: recorder.newId, onTurn: both }
}

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

/** What a turn came to, without what differs from run to run. */
export interface TurnLine {
  readonly conversation: string
  readonly seq: number
  /** Null where an event began it. */
  readonly text: string | null
  readonly status: string
  readonly answer?: string
  readonly why?: Why
  readonly calls: readonly {
    readonly server?: string
    readonly tool: string
    readonly arguments: unknown
    readonly status?: string
    readonly content?: unknown
  }[]
  readonly hooks: readonly { readonly server: string; readonly hook: string; readonly outcome: string }[]
  readonly prompt: readonly { readonly from: string; readonly namespace?: string; readonly tokens: number }[]
}

/** What two runs are compared by. */
export function turnLine(turn: Turn): TurnLine {
  const { conversation, seq, text, status, why } = turn
  return {
    ...{ conversation, seq, text, status },
    ...(turn.answer !== undefined && { answer: turn.answer }),
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
