/**
 * The server's part of a recorded connection: each message of the client is looked up, and what the server sent in answer follows, in its
 * order. What the server sent unasked comes when all that stood before it has been sent again.
 */
import { type Clock, realClock } from '../core/clock.ts'
import { canonicalJson } from '../core/digest.ts'
import { redacted } from '../core/redact.ts'
import { subscriptionKey } from '../engine/reserved.ts'
import { type Id, isId, isRecord } from '../jsonrpc/message.ts'
import { messagesOf, type RecordedMessage, tokenOf } from './format.ts'
import type { RecordedFrame } from './read.ts'

/** A request or notification of a client. */
interface ClientMessage {
  readonly method: string
  readonly params: unknown
  /** Absent on what is only told. */
  readonly id?: Id
}

interface Slot extends RecordedFrame {
  readonly message: RecordedMessage
  /** What is asked, where it asks or tells. */
  readonly key: string | undefined
  /** The call of the client that it belongs to: as its answer, or as something said on the way there. */
  owner?: number
  used: boolean
}

/** Asked by every client in its own words: what it says of itself does not make it another question. */
const opening = new Set(['initialize', 'server/discover', 'ping', 'notifications/initialized', 'logging/setLevel'])

/** How a script is played. */
interface ScriptOptions {
  /** 1 is the pace of the recording, 2 twice that. Default: without any waiting. */
  readonly speed?: number | undefined
  readonly clock?: Clock | undefined
  /** Whether each answer is given once only, as it was. Default false: a question that comes again has the answer again. */
  readonly once?: boolean
}

/** Plays one connection. */
export class ConnectionPlayback {
  readonly #slots: readonly Slot[]
  readonly #send: (text: string) => void
  readonly #speed: number
  readonly #clock: Clock
  readonly #once: boolean
  /** Ids of the tape, each with what stands for it now. */
  readonly #now = new Map<unknown, unknown>()
  /** The same of tokens of progress, which have names of their own. */
  readonly #tokens = new Map<unknown, unknown>()
  /** Names that the client of then made up, each with the one of now. */
  readonly #renamed = new Map<string, string>()
  /** Questions of the server that wait for the client: by id, what goes on when it has answered. */
  readonly #held = new Map<Id, () => void>()
  #stopped = false

  constructor(frames: readonly RecordedFrame[], send: (text: string) => void, options: ScriptOptions = {}) {
    this.#slots = owned(frames.flatMap(slotsOf))
    this.#send = send
    this.#speed = options.speed ?? 0
    this.#clock = options.clock ?? realClock
    this.#once = options.once ?? false
  }

  /** Sends what the server sent before its client sent anything. */
  begin(): void {
    this.#say(this.#takeUnasked(-1), 0)
  }

  /** The methods of the requests that are in the recording and were not made. */
  unasked(): readonly string[] {
    return this.#slots.flatMap(({ from, used, message: { id, method } }) =>
      from === 'client' && !used && id !== undefined && typeof method === 'string' ? [method] : [],
    )
  }

  /** Says what was said to this; false where the tape does not know it. `again`: only what is asked, nothing unasked. */
  play(asking: ClientMessage, again = false): boolean {
    const key = keyOf(asking.method, asking.params)
    const meant = (slot: Slot): boolean =>
      slot.from === 'client' && (slot.key === key || (isRedacted(slot) && asksFor(slot.message, asking)))
    const fresh = this.#slots.findIndex(slot => meant(slot) && !slot.used)
    const at = fresh !== -1 || this.#once ? fresh : this.#slots.findLastIndex(meant)
    const slot = this.#slots[at]
    if (slot === undefined) return false
    const first = !slot.used
    slot.used = true
    this.#bind(slot.message, asking)
    const mine = this.#indices(({ owner }) => owner === at)
    // What was said unasked comes in its turn, and once.
    const free = first && !again ? this.#takeUnasked(at) : []
    const due = [...mine, ...free].sort((a, b) => a - b)
    this.#say(due, slot.at)
    return true
  }

  /** The client has answered a question of the server. */
  answered(message: RecordedMessage): void {
    const { id } = message
    if (!isId(id)) return
    const goOn = this.#held.get(id)
    this.#held.delete(id)
    goOn?.()
  }

  stop(): void {
    this.#stopped = true
    this.#held.clear()
  }

  /** Maps ids and tokens of the recording to those of this request. */
  #bind(taped: RecordedMessage, { id, params }: ClientMessage): void {
    if (id !== undefined) this.#now.set(taped['id'], id)
    const [then, now] = [tokenOf(taped['params']), tokenOf(params)]
    if (then !== undefined) this.#tokens.set(then, now)
    for (const name of madeUp) {
      const [old, own] = [memberOf(taped['params'], name), memberOf(params, name)]
      if (typeof old === 'string' && typeof own === 'string' && old !== own) this.#renamed.set(old, own)
    }
  }

  /** What the server sent of itself before the next message of the client that is still to come; it is sent once. */
  #takeUnasked(at: number): readonly number[] {
    const next = this.#nextUnsaid(at)
    const free = this.#indices(isFree).filter(index => index < next)
    for (const index of free) (this.#slots[index] as Slot).used = true
    return free
  }

  #indices(wanted: (slot: Slot) => boolean): number[] {
    return this.#slots.flatMap((slot, at) => (wanted(slot) ? [at] : []))
  }

  /** The next client message that has not been sent yet. */
  #nextUnsaid(at: number): number {
    const next = this.#slots.findIndex(
      ({ from, used, key }, index) => index > at && from === 'client' && key !== undefined && !used,
    )
    return next === -1 ? this.#slots.length : next
  }

  /** In order; after a question of the server the rest waits for its answer, if there was one on the tape. */
  #say(due: readonly number[], since: number): void {
    for (const [order, at] of due.entries()) {
      const slot = this.#slots[at]
      if (slot === undefined) continue
      this.#later(slot.at - since, () => this.#send(JSON.stringify(this.#today(slot.message), this.#replace)))
      const { id, method } = slot.message
      const rest = due.slice(order + 1)
      if (method === undefined || !isId(id) || rest.length === 0 || !this.#wasAnswered(at, id)) continue
      this.#held.set(id, () => this.#say(rest, slot.at))
      return
    }
  }

  /** Whether the recording contains the client's answer to a question. */
  #wasAnswered(at: number, id: Id): boolean {
    return this.#slots.some(
      ({ from, message }, index) => index > at && from === 'client' && message['method'] === undefined && message['id'] === id,
    )
  }

  /** Runs now, or at the recorded pace. */
  #later(ms: number, fn: () => void): void {
    const say = (): void => {
      if (!this.#stopped) fn()
    }
    if (this.#speed > 0 && ms > 0) this.#clock.setTimeout(say, ms / this.#speed, true)
    else say()
  }

  readonly #replace = (_: string, value: unknown): unknown =>
    typeof value === 'string' ? (this.#renamed.get(value) ?? value) : value

  /** The message with the ids and tokens of now. */
  #today(message: RecordedMessage): Record<string, unknown> {
    const now = (value: unknown): unknown => (this.#now.has(value) ? this.#now.get(value) : value)
    if (message['method'] === undefined) return { ...message, id: now(message['id']) }
    const { params } = message
    if (!isRecord(params)) return { ...message }
    const put: Record<string, unknown> = { ...params }
    const token = this.#tokens.get(params['progressToken'])
    if (token !== undefined) put['progressToken'] = token
    if (params['requestId'] !== undefined) put['requestId'] = now(params['requestId'])
    const meta = params['_meta']
    if (isRecord(meta) && meta[subscriptionKey] !== undefined)
      put['_meta'] = { ...meta, [subscriptionKey]: now(meta[subscriptionKey]) }
    return { ...message, params: put }
  }
}

function isFree({ from, owner, used, key }: Slot): boolean {
  return from === 'server' && owner === undefined && !used && key !== undefined
}

/** Finds whose each thing is that a server said. Calls that are never answered own nothing: what is said on them has its turn as the rest. */
function owned(slots: readonly Slot[]): readonly Slot[] {
  const open = new Map<unknown, number>()
  const tokens = new Map<unknown, number>()
  const waiting: { readonly slot: Slot; readonly call: number }[] = []
  for (const [at, slot] of slots.entries()) {
    const { id, method, params } = slot.message
    if (slot.from === 'client') {
      if (method === undefined || id === undefined) continue
      open.set(id, at)
      const token = tokenOf(params)
      if (token !== undefined) tokens.set(token, at)
    } else if (method === undefined) {
      const call = open.get(id)
      open.delete(id)
      if (call === undefined) continue
      slot.owner = call
      for (const other of waiting) if (other.call === call) other.slot.owner = call
    } else {
      // A question is the newest call's; progress is that of the call that it names.
      const call =
        id === undefined ? tokens.get(isRecord(params) ? params['progressToken'] : undefined) : [...open.values()].at(-1)
      if (call !== undefined) waiting.push({ slot, call })
    }
  }
  return slots
}

/** A batch is several messages. */
function slotsOf(frame: RecordedFrame): readonly Slot[] {
  return messagesOf(frame.value).map(message => {
    const { method, params } = message
    return { ...frame, message, key: typeof method === 'string' ? keyOf(method, params) : undefined, used: false }
  })
}

/** Members of params that a client makes up anew each time. */
const madeUp: readonly string[] = ['hostId', 'after', 'transaction_id', 'subscription_id', 'inferenceId']

/** What is asked, without what names a client, a process or a moment. */
function keyOf(method: string, params: unknown): string {
  if (opening.has(method)) return method
  return `${method} ${canonicalJson(plain(params))}`
}

function plain(params: unknown): RecordedMessage {
  if (!isRecord(params)) return {}
  const stored = Object.entries(params).filter(([name]) => name !== '_meta' && !madeUp.includes(name))
  // An answer that is a request of its own carries its result.
  return Object.fromEntries(stored.map(([name, value]) => [name, name === 'result' && isRecord(value) ? plain(value) : value]))
}

function isRedacted({ key }: Slot): boolean {
  return key?.includes(redacted) === true
}

/** The same question, as far as it was kept: what was left out of the tape may be anything. */
function asksFor(taped: RecordedMessage, { method, params }: ClientMessage): boolean {
  return taped['method'] === method && covers(plain(taped['params']), plain(params))
}

/** Whether a recorded value matches; redacted parts match anything. */
function covers(taped: unknown, given: unknown): boolean {
  if (taped === redacted) return true
  if (Array.isArray(taped))
    return Array.isArray(given) && taped.length === given.length && taped.every((item, at) => covers(item, given[at]))
  if (!isRecord(taped) || !isRecord(given)) return taped === given
  const names = Object.keys(taped)
  return (
    names.length === Object.keys(given).length &&
    names.every(name => Object.hasOwn(given, name) && covers(taped[name], given[name]))
  )
}

function memberOf(params: unknown, name: string): unknown {
  return isRecord(params) ? params[name] : undefined
}
