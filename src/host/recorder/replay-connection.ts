/**
 * A server out of a recording: what it was asked then it answers as it did then. What it said unasked comes when what stood before it
 * has been asked again; what was never asked is refused, so that it shows.
 */
import { canonicalJson } from '../../core/digest.ts'
import type { Carrier, Connection, Sink } from '../../jsonrpc/connection.ts'
import { isRecord } from '../../jsonrpc/message.ts'

export interface RecordedFrame {
  readonly way: 'out' | 'in'
  readonly frame: unknown
}

export interface RecordedConnection {
  readonly carrier: Carrier
  readonly frames: readonly RecordedFrame[]
}

const none: RecordedConnection = { carrier: 'memory', frames: [] }

export interface ReplayedServer {
  open(): Connection
  /** What was asked that the recording does not know, and what it knows that was not asked. */
  differences(): { readonly added: readonly string[]; readonly missing: readonly string[] }
}

interface Slot extends RecordedFrame {
  used: boolean
}

type Frame = Readonly<Record<string, unknown>>

/** `connections`: the frames of each, in order; one that is opened beyond them begins again with the last. */
export function replayedServer(connections: readonly RecordedConnection[]): ReplayedServer {
  const added: string[] = []
  const played: Slot[][] = []
  return {
    open: () => {
      const { carrier, frames } = connections[Math.min(played.length, connections.length - 1)] ?? none
      const slots = frames.map(frame => ({ ...frame, used: false }))
      played.push(slots)
      return connectionOf(carrier, slots, method => added.push(method))
    },
    differences: () => ({
      added,
      missing: played.flatMap(slots =>
        slots.flatMap(({ way, frame, used }) => (way === 'out' && !used && isRequest(frame) ? [String(frame['method'])] : [])),
      ),
    }),
  }
}

function connectionOf(carrier: Carrier, slots: readonly Slot[], unknown: (method: string) => void): Connection {
  let sink: Sink | undefined
  const deliver = (frame: unknown): void => queueMicrotask(() => sink?.frame(JSON.stringify(frame)))
  return {
    carrier,
    start: given => {
      sink = given
      unsolicited(slots, 0, deliver)
    },
    send: text => {
      const sent: unknown = JSON.parse(text)
      if (!isRecord(sent)) return
      const at = slots.findIndex(({ way, frame, used }) => way === 'out' && !used && isSame(frame, sent))
      const slot = slots[at]
      if (slot === undefined) {
        if (!isRequest(sent)) return
        unknown(String(sent['method']))
        deliver({ jsonrpc: '2.0', id: sent['id'], error: { code: -32601, message: 'The recording does not know this request' } })
        return
      }
      slot.used = true
      before(slots, at, deliver)
      if (isRequest(sent) && isRecord(slot.frame)) answer(slots, at, slot.frame['id'], sent['id'], deliver)
      unsolicited(slots, at + 1, deliver)
    },
    close: async () => sink?.closed(),
  }
}

/** All that was said unasked up to there. */
function before(slots: readonly Slot[], end: number, deliver: (frame: unknown) => void): void {
  for (const slot of slots.slice(0, end)) tell(slot, deliver)
}

/** What was said unasked from there to the next thing that was sent. */
function unsolicited(slots: readonly Slot[], start: number, deliver: (frame: unknown) => void): void {
  for (const slot of slots.slice(start)) {
    if (slot.way === 'out') return
    tell(slot, deliver)
  }
}

function tell(slot: Slot, deliver: (frame: unknown) => void): void {
  if (slot.way !== 'in' || slot.used || !isRecord(slot.frame) || typeof slot.frame['method'] !== 'string') return
  slot.used = true
  deliver(slot.frame)
}

function answer(slots: readonly Slot[], after: number, recorded: unknown, id: unknown, deliver: (frame: unknown) => void): void {
  const found = slots
    .slice(after)
    .find(
      ({ way, frame, used }) =>
        way === 'in' && !used && isRecord(frame) && frame['method'] === undefined && frame['id'] === recorded,
    )
  if (found === undefined || !isRecord(found.frame)) return
  found.used = true
  deliver({ ...found.frame, id })
}

/** Requests are the same by what they ask, answers by whom they answer. Ids, keys and traces are of their time. */
function isSame(recorded: unknown, sent: Frame): boolean {
  if (!isRecord(recorded)) return false
  if (sent['method'] === undefined) return recorded['method'] === undefined && recorded['id'] === sent['id']
  return (
    recorded['method'] === sent['method'] && canonicalJson(plain(recorded['params'])) === canonicalJson(plain(sent['params']))
  )
}

/** Members that name a process or a moment, and not what is asked. */
const passing: ReadonlySet<string> = new Set(['_meta', 'hostId', 'after', 'inferenceId'])

function plain(params: unknown): unknown {
  if (!isRecord(params)) return params ?? null
  const kept = Object.entries(params).filter(([name]) => !passing.has(name))
  // An answer that is a request of its own carries its result.
  return Object.fromEntries(kept.map(([name, value]) => [name, name === 'result' ? plain(value) : value]))
}

function isRequest(frame: unknown): frame is Frame {
  return isRecord(frame) && frame['id'] !== undefined && typeof frame['method'] === 'string'
}
