/**
 * The limits of a duplex carrier (stdio, WebSocket, memory): how large a frame may be, and how much may wait for a slow reader.
 * Separate from the queue itself, so that these types can be imported without the types of Node.
 */
import { clientFrameLimits, type FrameLimits, frameLimits } from '../../jsonrpc/limits.ts'

/** All limits of a duplex carrier. */
export interface CarrierLimits extends Pick<FrameLimits, 'frameBytes'>, QueueLimits {}

/** Fills in the defaults of a server. */
export function serverCarrierLimits(given: Partial<CarrierLimits> = {}): CarrierLimits {
  return { frameBytes: frameLimits.frameBytes, ...queueLimits, ...given }
}

/** Fills in the defaults of a client, which accepts larger frames and bounds its own answers. */
export function clientCarrierLimits(given: Partial<CarrierLimits> = {}): CarrierLimits {
  return { frameBytes: clientFrameLimits.frameBytes, ...queueLimits, answerCeiling: clientAnswers, ...given }
}

/** A client keeps reading while it cannot write, so only this bounds the answers that it owes. */
const clientAnswers = 4 * 1024 * 1024

/** How much may wait for a slow reader. Apart from the queue itself, so that these types can be read without those of Node. */

/** How much may wait for a slow reader, and for how long. */
export interface QueueLimits {
  /** Bytes that may wait for a slow reader before the `stallMs` timer starts. */
  readonly queueBytes: number
  /** Bytes that may wait before messages that can be skipped (log, progress) are dropped. */
  readonly spareCeiling: number
  /** Bytes that may wait at all. */
  readonly queueCeiling: number
  /**
   * Bytes of answers and notifications that may wait, for an end whose peer can cause any number of them by asking without
   * reading. A serving end needs no such limit: it stops accepting requests while its queue is full.
   */
  readonly answerCeiling?: number
  /** A reader with more than `queueBytes` waiting is disconnected if it takes less than `queueBytes` in this time. */
  readonly stallMs: number
}

const mebibyte = 1024 * 1024

/** The defaults of the queue limits. */
export const queueLimits: QueueLimits = {
  queueBytes: mebibyte / 4,
  spareCeiling: 4 * mebibyte,
  queueCeiling: 64 * mebibyte,
  stallMs: 10_000,
}
