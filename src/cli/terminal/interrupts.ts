/** Ctrl-C: once it stops what is nearest (a question, the turn under way, what is half typed), twice it ends. */

export interface InterruptParts {
  readonly now: () => number
  /** Says no to an open question. False: there is none. */
  readonly refuse: () => boolean
  /** Stops the turn under way. False: there is none. */
  readonly cancel: () => boolean
  /** Forgets what is half typed. False: nothing is. */
  readonly clear: () => boolean
  /** Says how to end. */
  readonly tell: () => void
  readonly end: () => void
}

/** A second one within this time means the end. */
const twiceMs = 2_000

export interface Interrupts {
  interrupt(): void
  /** Something else was typed in between. */
  reset(): void
}

export function createInterrupts(parts: InterruptParts): Interrupts {
  let last = Number.NEGATIVE_INFINITY
  return {
    reset: () => {
      last = Number.NEGATIVE_INFINITY
    },
    interrupt: () => {
      const now = parts.now()
      if (now - last < twiceMs) return parts.end()
      if (parts.refuse() || parts.clear()) return
      last = now
      if (!parts.cancel()) parts.tell()
    },
  }
}
