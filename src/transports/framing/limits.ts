/** The limits of a duplex carrier: of what it takes in, and of what waits to go out. */
import { clientFrameLimits, type FrameLimits, frameLimits } from '../../jsonrpc/limits.ts'

export interface CarrierLimits extends Pick<FrameLimits, 'frameBytes'>, QueueLimits {}

/** The given limits; where there are none, the defaults of a server. */
export function serverCarrierLimits(given: Partial<CarrierLimits> = {}): CarrierLimits {
  return { frameBytes: frameLimits.frameBytes, ...queueLimits, ...given }
}

/** The given limits; where there are none, the defaults of a client, which takes larger frames. */
export function clientCarrierLimits(given: Partial<CarrierLimits> = {}): CarrierLimits {
  return { frameBytes: clientFrameLimits.frameBytes, ...queueLimits, answerCeiling: clientAnswers, ...given }
}

/** A client goes on reading while it cannot write, so that its answers are bounded by this alone. */
const clientAnswers = 4 * 1024 * 1024

/** How much may wait for a slow reader. Apart from the queue itself, so that these types can be read without those of Node. */

export interface QueueLimits {
  /** Bytes that may wait for a slow reader before the clock of `stallMs` starts. */
  readonly queueBytes: number
  /** Bytes that may wait before what can be spared (log, progress) is left out. */
  readonly spareCeiling: number
  /** Bytes that may wait at all. */
  readonly queueCeiling: number
  /**
   * Bytes of answers and notifications that may wait, where the other end can bring about any number of them: it asks and does
   * not read. An end that serves takes no more requests while it is full, which bounds its answers better.
   */
  readonly answerCeiling?: number
  /** A reader with more than `queueBytes` waiting, that takes less than `queueBytes` in this time, is cut. */
  readonly stallMs: number
}

const mebibyte = 1024 * 1024

export const queueLimits: QueueLimits = {
  queueBytes: mebibyte / 4,
  spareCeiling: 4 * mebibyte,
  queueCeiling: 64 * mebibyte,
  stallMs: 10_000,
}
