/**
 * A queue of frames for a slow reader: bounded in bytes, merged where a newer frame replaces an older one, and watched, so that
 * a reader that takes nothing is detected. All duplex carriers share it.
 */
import { type Cancel, type Clock, realClock } from '../../core/clock.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import type { QueueLimits } from './limits.ts'

/** Estimated memory of a waiting answer besides its text. */
const answerOverhead = 128

/** Receives the state changes of a backlog; implemented by the connection that fills it. */
export interface BacklogOwner {
  /** More than `queueBytes` wait: a serving end stops accepting requests. */
  full(): void
  /** At most `queueBytes` wait. */
  free(): void
  /** The reader took too little in `stallMs`. */
  stalled(reason: ConnectionError): void
}

/** A whole frame as text, or a piece of a large one as bytes. */
export interface FramePiece {
  readonly data: string | Buffer
  /** True for the last piece of a frame. */
  readonly final: boolean
}

/** One frame that waits. */
interface Item {
  readonly frame: string
  readonly bytes: number
  /** Bytes that count towards `answerCeiling`. */
  readonly owed: number
}

/** Larger frames are written in pieces, so that the progress of a slow reader is visible. */
export const wholeBytes = 256 * 1024
/** The size of those pieces. */
export const pieceBytes = 64 * 1024
/** Checks of a slow reader per `stallMs`, so that data which only filled kernel buffers does not grant it a second term. */
const looks = 4

/** The queue, with its limits and the watch on its reader. */
export class Backlog {
  /** Bytes that wait. */
  bytes = 0
  readonly #owner: BacklogOwner
  readonly #limits: QueueLimits
  readonly #clock: Clock
  /** In order of sending. A map keeps that order and finds the frame to merge with. */
  readonly #items = new Map<string | number, Item>()
  #nextKey = 0
  /** Bytes of waiting answers. */
  #owed = 0
  /** The remainder of a large frame that is being written. */
  #rest: Buffer | undefined = undefined
  #full = false
  /** Bytes taken since the watch began. */
  #taken = 0
  /** Checks since the reader last took enough. */
  #looks = 0
  #cancel: Cancel | undefined = undefined

  constructor(owner: BacklogOwner, limits: QueueLimits, clock: Clock = realClock) {
    this.#owner = owner
    this.#limits = limits
    this.#clock = clock
  }

  /**
   * Adds a frame; false if that exceeds a limit. A frame with the same merge key is replaced, at the end of the queue. A
   * `spare` frame is dropped early instead. `answers`: nobody here waits for the outcome of this frame.
   */
  add(frame: string, merge?: string, answers = false, spare = false): boolean {
    const key = merge ?? this.#nextKey++
    const old = this.#items.get(key)
    const bytes = Buffer.byteLength(frame)
    const total = this.bytes + bytes - (old?.bytes ?? 0)
    // An empty queue takes any frame: otherwise one that is larger than the limit could never be sent.
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

  /** Removes what is to be written next; a large frame piece by piece. */
  take(): FramePiece | undefined {
    if (this.#rest !== undefined) return this.#takePiece(this.#rest)
    const item = this.#shift()
    if (item === undefined) return undefined
    if (item.bytes > wholeBytes) return this.#takePiece(Buffer.from(item.frame))
    this.#took(item.bytes)
    return { data: item.frame, final: true }
  }

  /** Removes the next frame as a whole, whatever its size. */
  takeFrame(): string | undefined {
    const item = this.#shift()
    if (item !== undefined) this.#took(item.bytes)
    return item?.frame
  }

  /** Discards everything and stops the watch. */
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

  /** Tells the owner when the queue crosses `queueBytes`, in either direction. */
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

  /** Starts a new observation period of `stallMs`. */
  #watch(): void {
    this.#taken = 0
    this.#looks = 0
    this.#wait()
  }

  #wait(): void {
    this.#cancel = this.#clock.setTimeout(() => this.#judge(), this.#limits.stallMs / looks, true)
  }

  /** Ends a period early if the reader took enough, and reports it as stalled after the last check. */
  #judge(): void {
    const { queueBytes, stallMs } = this.#limits
    if (this.#taken >= queueBytes) return this.#watch()
    if (++this.#looks < looks) return this.#wait()
    const took = `in ${stallMs} ms it took ${this.#taken} of ${this.#taken + this.bytes} bytes`
    const message = `The other side reads too slowly: ${took}. It must read at least ${queueBytes} bytes (queueBytes) in that time`
    this.#owner.stalled(new ConnectionError('lost', message))
  }
}

/** The error for a frame that the queue does not take. */
export function noCapacity(limits: QueueLimits, answers: boolean): ConnectionError {
  const message =
    answers && limits.answerCeiling !== undefined
      ? `More than ${limits.answerCeiling} bytes of responses (answerCeiling) are queued: the other side sends requests but does not read`
      : `More than ${limits.queueCeiling} bytes (queueCeiling) are queued for the other side. Send less at a time`
  return new ConnectionError('too-large', message)
}
