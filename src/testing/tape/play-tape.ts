/**
 * A server out of a tape: what it was asked then it answers as it did then, under the id of now. What was never asked is refused, so that it
 * shows.
 */
import type { Connection } from '../../jsonrpc/connection.ts'
import { failureFrame, type Id, isId, isRecord, successFrame } from '../../jsonrpc/message.ts'
import { fateOf } from './faults.ts'
import { faulty } from './faulty.ts'
import { Outstanding } from './outstanding.ts'
import { type Asking, Script } from './script.ts'
import type { PlayingOptions, TapedConversation } from './tape.ts'

/** Asked by clients when they like, and always answered alike. */
const emptyAnswers = new Set(['ping', 'logging/setLevel'])

/** Serves connections, each with the next conversation of the tape; those beyond the last begin with the last again. */
export function playTape(
  conversations: readonly TapedConversation[],
  options: PlayingOptions = {},
): (connection: Connection) => void {
  const fate = fateOf(options.faults, options.seed)
  let opened = 0
  return connection => {
    const at = Math.min(opened++, conversations.length - 1)
    serve(connection, conversations, at, options, fate)
  }
}

function serve(
  connection: Connection,
  conversations: readonly TapedConversation[],
  at: number,
  { speed, clock }: PlayingOptions,
  fate: ReturnType<typeof fateOf>,
): void {
  const methods = new Map<Id, string>()
  const line = faulty(connection, fate, id => methods.get(id), clock)
  const outstanding = new Outstanding()
  const send = (text: string): void => {
    outstanding.answered(text)
    void line.send(text)
  }
  const script = new Script(conversations[at]?.frames ?? [], send, speed, clock)
  // A question of another conversation is better answered than refused: a mock is asked by others than its tape was.
  const others = conversations.filter((_, other) => other !== at).map(({ frames }) => new Script(frames, send, speed, clock))
  const take = (value: unknown): void => {
    if (!isRecord(value)) return
    if (typeof value['method'] !== 'string') return script.answered(value)
    const asking: Asking = { method: value['method'], params: value['params'], ...(isId(value['id']) && { id: value['id'] }) }
    if (asking.id !== undefined) methods.set(asking.id, asking.method)
    if (script.play(asking) || others.some(other => other.play(asking, true)) || asking.id === undefined) return
    if (emptyAnswers.has(asking.method)) return send(successFrame(asking.id, '{}'))
    send(
      failureFrame(asking.id, {
        code: -32601,
        message: `The tape does not know this ${asking.method}: it was not asked with these params`,
      }),
    )
  }
  void line.start({
    frame: text => {
      outstanding.asked(text)
      const value = read(text)
      if (value === undefined) return send(failureFrame(undefined, { code: -32700, message: 'Not JSON' }))
      for (const part of Array.isArray(value) ? value : [value]) take(part)
    },
    fault: ({ message }) => send(failureFrame(undefined, { code: -32700, message })),
    closed: () => {
      outstanding.end()
      for (const each of [script, ...others]) each.stop()
    },
    quiet: () => outstanding.quiet(),
  })
}

function read(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
