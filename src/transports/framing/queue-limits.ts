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
