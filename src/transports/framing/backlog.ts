/**
 * Frames that wait for a slow reader: bounded in bytes, merged where a newer frame makes an older one pointless, and
 * watched, so that a reader who does not take them is found out. Duplex carriers share it.
 */
import { type Cancel, type Clock, realClock } from '../../core/clock.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import type { QueueLimits } from './limits.ts'

/** What a short answer takes in memory beside its text. */
const answerOverhead = 128

/** What the backlog tells the one who fills and empties it. */
export interface BacklogOwner {
  /** More waits than `queueBytes`: a serving end now stops to take requests. */
  full(): void
  /** No more than `queueBytes` waits. */
  free(): void
  /** The reader takes too little. */
  stalled(reason: ConnectionError): void
}

/** A whole frame as text, or a piece of a large one as bytes. */
export interface FramePiece {
  readonly data: string | Buffer
  /** True for the last piece of a frame. */
  readonly final: boolean
}

interface Item {
  readonly frame: string
  readonly bytes: number
  /** What it counts as an answer. */
  readonly owed: number
}

/** Larger frames leave in pieces, so that it shows how a slow reader gets on. */
export const wholeBytes = 256 * 1024
export const pieceBytes = 64 * 1024
/** How often a slow reader is looked at in `stallMs`: what the kernel still took at first gives it no second term. */
const looks = 4

export class Backlog {
  /** Bytes that wait. */
  bytes = 0
  readonly #owner: BacklogOwner
  readonly #limits: QueueLimits
  readonly #clock: Clock
  /** In the order of leaving: a map keeps it, and finds what is to be merged. */
  readonly #items = new Map<string | number, Item>()
  #nextKey = 0
  #owed = 0
  /** What is left of a large frame. */
  #rest: Buffer | undefined = undefined
  #full = false
  #taken = 0
  /** Looks since the reader had last taken enough. */
  #looks = 0
  #cancel: Cancel | undefined = undefined

  constructor(owner: BacklogOwner, limits: QueueLimits, clock: Clock = realClock) {
    this.#owner = owner
    this.#limits = limits
    this.#clock = clock
  }

  /**
   * Takes a frame in. It replaces one with the same merge key, at the end of the queue. False: that would be too much.
   * What can be spared is left out before it comes to that. `answers`: nobody here waits for what comes of it.
   */
  add(frame: string, merge?: string, answers = false, spare = false): boolean {
    const key = merge ?? this.#nextKey++
    const old = this.#items.get(key)
    const bytes = Buffer.byteLength(frame)
    const total = this.bytes + bytes - (old?.bytes ?? 0)
    if (spare && total > this.#limits.spareCeiling && this.bytes > 0) return true
    const owed = answers ? bytes + answerOverhead : 0
    const allOwed = this.#owed + owed - (old?.owed ?? 0)
    if (total > this.#limits.queueCeiling && this.bytes > 0) return false
    if (answers && allOwed > (this.#limits.answerCeiling ?? Number.POSITIVE_INFINITY) && this.#owed > 0) return false
    if (old !== undefined) this.#items.delete(key)
    this.#items.set(key, { frame, bytes, owed })
    this.bytes = total
    this.#owed = allOwed
    this.#look()
    return true
  }

  /** Takes out what is to be sent next, a large frame piece by piece. */
  take(): FramePiece | undefined {
    if (this.#rest !== undefined) return this.#takePiece(this.#rest)
    const item = this.#shift()
    if (item === undefined) return undefined
    if (item.bytes > wholeBytes) return this.#takePiece(Buffer.from(item.frame))
    this.#took(item.bytes)
    return { data: item.frame, final: true }
  }

  /** Takes out the next frame whole, however large. */
  takeFrame(): string | undefined {
    const item = this.#shift()
    if (item !== undefined) this.#took(item.bytes)
    return item?.frame
  }

  /** Forgets everything; the owner is told no more. */
  clear(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#full = false
    this.#rest = undefined
    this.#items.clear()
    this.bytes = 0
    this.#owed = 0
  }

  #shift(): Item | undefined {
    for (const [key, item] of this.#items) {
      this.#items.delete(key)
      this.#owed -= item.owed
      return item
    }
    return undefined
  }

  #takePiece(from: Buffer): FramePiece {
    const data = from.subarray(0, pieceBytes)
    const final = data.length === from.length
    this.#rest = final ? undefined : from.subarray(pieceBytes)
    this.#took(data.length)
    return { data, final }
  }

  #took(bytes: number): void {
    this.bytes -= bytes
    this.#taken += bytes
    this.#look()
  }

  #look(): void {
    const full = this.bytes > this.#limits.queueBytes
    if (full === this.#full) return
    this.#full = full
    if (full) {
      this.#watch()
      this.#owner.full()
    } else {
      this.#cancel?.()
      this.#owner.free()
    }
  }

  #watch(): void {
    this.#taken = 0
    this.#looks = 0
    this.#wait()
  }

  #wait(): void {
    this.#cancel = this.#clock.setTimeout(() => this.#judge(), this.#limits.stallMs / looks, true)
  }

  #judge(): void {
    const { queueBytes, stallMs } = this.#limits
    if (this.#taken >= queueBytes) return this.#watch()
    if (++this.#looks < looks) return this.#wait()
    const took = `in ${stallMs} ms it took ${this.#taken} of ${this.#taken + this.bytes} bytes`
    const message = `The other end does not read: ${took}. Read at least ${queueBytes} bytes (queueBytes) in that time`
    this.#owner.stalled(new ConnectionError('lost', message))
  }
}

/** The refusal of a frame for which there is no room. */
export function noRoom(limits: QueueLimits, answers: boolean): ConnectionError {
  const message =
    answers && limits.answerCeiling !== undefined
      ? `More than ${limits.answerCeiling} bytes of answers (answerCeiling) wait for the other end, which asks and does not read`
      : `More than ${limits.queueCeiling} bytes (queueCeiling) wait to be read by the other end. Send less at a time`
  return new ConnectionError('too-large', message)
}
