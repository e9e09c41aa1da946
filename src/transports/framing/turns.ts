/**
 * Frames from an end that may send any number of them: so many are taken in one turn of the event loop, the rest in the next ones.
 * The system gives us up to two mebibytes at once, and those may be tens of thousands of messages.
 */
import type { Sink } from '../../jsonrpc/connection.ts'

/** What may be taken in one turn, unless told otherwise. */
const usualPerTurn = 256
/** A frame counts by its length too. */
const charsPerUnit = 4_096

export class FrameTurns implements Pick<Sink, 'frame' | 'fault'> {
  readonly #sink: Pick<Sink, 'frame' | 'fault'>
  readonly #rest: () => void
  readonly #goOn: () => void
  readonly #perTurn: number
  #taken = 0
  #scheduled = false
  #resting = false

  /** `rest` is called when it is enough for this turn, `goOn` in the next. */
  constructor(sink: Pick<Sink, 'frame' | 'fault'>, rest: () => void, goOn: () => void, perTurn = usualPerTurn) {
    this.#sink = sink
    this.#rest = rest
    this.#goOn = goOn
    this.#perTurn = perTurn
  }

  readonly frame = (text: string): void => {
    this.#take(1 + text.length / charsPerUnit)
    this.#sink.frame(text)
  }

  readonly fault: Sink['fault'] = fault => {
    this.#take(1)
    this.#sink.fault(fault)
  }

  #take(units: number): void {
    this.#taken += units
    // Where little comes, no turn is counted.
    if (this.#taken < this.#perTurn / 2) return
    if (!this.#scheduled) {
      this.#scheduled = true
      setImmediate(this.#next)
    }
    if (this.#taken < this.#perTurn || this.#resting) return
    this.#resting = true
    this.#rest()
  }

  readonly #next = (): void => {
    this.#scheduled = false
    this.#taken = 0
    if (!this.#resting) return
    this.#resting = false
    this.#goOn()
  }
}
