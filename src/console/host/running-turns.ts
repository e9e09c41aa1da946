/** The turns that run in this process: what has been said so far, when calls began that have no outcome yet, and news of them. */
import type { Cancel, Clock } from '../../core/clock.ts'
import type { InferenceReport } from '../../host/loop/generate.ts'
import type { Turn, TurnPart } from '../../host/loop/turn.ts'

/** What is known of a running turn beside itself. */
export interface RunningTurn {
  readonly turn: Turn
  /** The answer so far. */
  partial: string
  /** When calls began that have no outcome yet, by number. */
  readonly began: Map<number, number>
  /** The inference that runs. */
  inference: InferenceReport | undefined
  /** How many hooks were heard of. */
  hooks: number
}

/** News of running turns. */
export interface TurnNews {
  /** A turn was accepted, made progress with its calls, or ended. */
  changed(turn: Turn): void
  /** The next part. Text is gathered for some milliseconds. */
  part(turn: Turn, part: TurnPart): void
}

const mostPartial = 1_000_000
const gatherMs = 50

/** Follows turns from their beginning to their end. */
export class RunningTurns {
  readonly #clock: Clock
  readonly #running = new Map<string, RunningTurn>()
  readonly #followers = new Set<TurnNews>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** A turn was accepted. One that is followed already is not followed twice. */
  begin(turn: Turn): void {
    const key = keyOf(turn)
    if (this.#running.has(key)) return
    const running: RunningTurn = { turn, partial: '', began: new Map(), inference: undefined, hooks: turn.hooks.length }
    this.#running.set(key, running)
    this.#tell(each => each.changed(turn))
    const over = (): void => {
      this.#running.delete(key)
      this.#tell(each => each.changed(turn))
    }
    void this.#read(running).then(over, over)
  }

  /** What is known of a running turn. */
  of(turn: Turn): RunningTurn | undefined {
    return this.#running.get(keyOf(turn))
  }

  /** Calls back with news; returns the way to stop. */
  follow(follower: TurnNews): () => void {
    this.#followers.add(follower)
    return () => void this.#followers.delete(follower)
  }

  async #read(running: RunningTurn): Promise<void> {
    const { turn } = running
    let text = ''
    let timer: Cancel | undefined
    const flush = (): void => {
      timer?.()
      timer = undefined
      if (text === '') return
      const part: TurnPart = { type: 'text', delta: text }
      text = ''
      this.#tell(each => each.part(turn, part))
    }
    for await (const part of turn) {
      this.#learn(running, part)
      if (part.type === 'text') {
        text += part.delta
        timer ??= this.#clock.setTimeout(flush, gatherMs, true)
        continue
      }
      flush()
      this.#tell(each => {
        each.part(turn, part)
        if (part.type === 'call' || part.type === 'result') each.changed(turn)
      })
    }
    flush()
    await turn.done.catch(() => undefined)
  }

  #learn(running: RunningTurn, part: TurnPart): void {
    if (part.type === 'text' && running.partial.length < mostPartial) running.partial += part.delta
    if (part.type === 'inference') {
      const isOver = part.inference.ms !== undefined
      running.inference = isOver ? undefined : part.inference
      // What was said before a call is part of the conversation, and not of the answer.
      if (!isOver) running.partial = ''
    }
    if (part.type === 'hook') running.hooks += 1
    if (part.type === 'call') running.began.set(part.call.n, this.#clock.now())
    if (part.type === 'result') running.began.delete(part.call.n)
  }

  #tell(news: (follower: TurnNews) => void): void {
    for (const follower of this.#followers) news(follower)
  }
}

function keyOf({ conversation, seq }: Turn): string {
  return `${seq} ${conversation}`
}
