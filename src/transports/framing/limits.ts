/** The limits of a duplex carrier: of what it takes in, and of what waits to go out. */
import { clientFrameLimits, type FrameLimits, frameLimits } from '../../jsonrpc/limits.ts'
import { type QueueLimits, queueLimits } from './queue-limits.ts'

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
