/**
 * Opening a lost session anew although nobody calls. A server that was restarted is met again by the stream on which it
 * speaks unasked; without this, those who follow its changes would stay deaf until somebody happened to make a call.
 */
import { backoffMs, isFinalError, pause, steadyMs } from '../engine/backoff.ts'
import type { Engine } from '../engine/engine.ts'
import { ConnectionError } from '../jsonrpc/connection.ts'

export interface Reconnectable {
  readonly engine: Engine
  /** True: somebody who calls was quicker. */
  readonly intact: boolean
  mend(): Promise<void>
  /** The server will not have us again. */
  gaveUp(error: unknown): void
}

export class Reconnector {
  readonly #session: Reconnectable
  readonly #stop = new AbortController()
  #openedAt: number
  /** Sessions in a row that were lost as soon as they were open. */
  #losses = 0
  #busy = false

  constructor(session: Reconnectable) {
    this.#session = session
    this.#openedAt = session.engine.clock.now()
  }

  /** Aborted when nothing is to be mended any more. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** A session is open. */
  opened(): void {
    this.#openedAt = this.#session.engine.clock.now()
  }

  /** It was lost. */
  lost(): void {
    if (this.#busy) return
    this.#busy = true
    this.#mend().finally(() => {
      this.#busy = false
    })
  }

  close(): void {
    this.#stop.abort()
  }

  async #mend(): Promise<void> {
    const { engine } = this.#session
    const { signal } = this
    this.#losses = engine.clock.now() - this.#openedAt > steadyMs ? 0 : this.#losses + 1
    // The first is made good at once; a server that forgets us again and again is asked less and less often.
    if (this.#losses > 1) await pause(engine.clock, backoffMs(this.#losses), signal)
    for (let failures = 1; !signal.aborted && !this.#session.intact; failures++) {
      try {
        await this.#session.mend()
      } catch (error) {
        engine.trace('mending-failed', error)
        // While it starts, whatever stands before a server may answer in its place: only its own word counts.
        if (isFinalError(error) && !(error instanceof ConnectionError)) return this.#session.gaveUp(error)
        await pause(engine.clock, backoffMs(failures), signal)
      }
    }
  }
}
