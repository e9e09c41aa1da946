/**
 * Records a session of a host into one file: every frame of every server, the clock, what the model was asked and said, what users
 * said and what came of it. The file holds all of that in the open: keep it as you would keep the conversation itself.
 */
import { createWriteStream } from 'node:fs'
import { type Clock, realClock } from '../../core/clock.ts'
import { jsonLine } from '../../core/json-lines.ts'
import { classify } from '../../features/reliability/problem/classify.ts'
import type { Connection } from '../../jsonrpc/connection.ts'
import type { OnTurn } from '../loop/loop-parts.ts'
import type { Turn } from '../loop/turn.ts'
import type { Model, ModelPart } from '../models/model.ts'
import type { RecordedLine, TurnLine } from './lines.ts'

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

type Line = RecordedLine extends infer L ? (L extends RecordedLine ? Omit<L, 'at'> : never) : never

/** @example const recorder = openRecorder('session.jsonl') */
export function openRecorder(file: string, { clock = realClock }: { readonly clock?: Clock } = {}): Recorder {
  const stream = createWriteStream(file, { mode: 0o600 })
  let failure: Error | undefined
  stream.on('error', error => {
    failure = error
  })
  let connections = 0
  const turns = new Set<Promise<unknown>>()
  const write = (line: Line): void => void stream.write(jsonLine({ at: clock.now(), ...line }))
  write({ kind: 'begin', version: 1 })
  return {
    wrap: server => connection => tapped(connection, server, connections++, write),
    model: model => overheard(model, write),
    newId: () => {
      const id = crypto.randomUUID()
      write({ kind: 'id', id })
      return id
    },
    onTurn: (turn, { attach, resumed }) => {
      const { conversation, text } = turn
      if (text !== null && !resumed) write({ kind: 'said', conversation, text, attach })
      const ended = turn.done.then(
        () => write({ kind: 'turn', turn: turnLine(turn) }),
        () => write({ kind: 'turn', turn: turnLine(turn) }),
      )
      turns.add(ended)
      void ended.finally(() => turns.delete(ended))
    },
    close: async () => {
      await Promise.all(turns)
      await new Promise<void>(ended => stream.end(() => ended()))
      if (failure !== undefined) throw failure
    },
  }
}

function tapped(connection: Connection, server: string, number: number, write: (line: Line) => void): Connection {
  const { listen, drop, rest, expire } = connection
  const passed = (kind: 'out' | 'in', text: string): void => write({ kind, server, connection: number, frame: parsed(text) })
  write({ kind: 'open', server, connection: number, carrier: connection.carrier })
  return {
    carrier: connection.carrier,
    ...(connection.caller !== undefined && { caller: connection.caller }),
    start: sink =>
      connection.start({
        frame: (text, status, within) => {
          passed('in', text)
          sink.frame(text, status, within)
        },
        fault: fault => sink.fault(fault),
        closed: reason => {
          write({ kind: 'closed', server, connection: number })
          sink.closed(reason)
        },
        hold: (id, held) => sink.hold?.(id, held),
        quiet: () => sink.quiet?.() ?? Promise.resolve(),
      }),
    send: (text, outgoing) => {
      passed('out', text)
      return connection.send(text, outgoing)
    },
    ...(listen && { listen: (outgoing, user) => listen.call(connection, outgoing, user) }),
    ...(drop && { drop: (id, reason) => drop.call(connection, id, reason) }),
    ...(rest && { rest: ms => rest.call(connection, ms) }),
    ...(expire && { expire: () => expire.call(connection) }),
    close: () => connection.close(),
  }
}

/** What is no JSON is kept as it came. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function overheard(model: Model, write: (line: Line) => void): Model {
  return {
    ...model,
    async *generate(request, options) {
      const parts: ModelPart[] = []
      try {
        for await (const part of model.generate(request, options)) {
          parts.push(part)
          yield part
        }
        write({ kind: 'model', info: model.info, request, parts })
      } catch (error) {
        const { code, message } = classify(error)
        write({ kind: 'model', info: model.info, request, parts, error: { code, message } })
        throw error
      }
    },
  }
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
