/** All frames of one connection in order, and those who wait for one. */
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { parsedJson } from '../expectations.ts'
import { Failed, type Frame } from '../scenario.ts'
import type { Match } from './raw-peer.ts'

interface Waiter {
  readonly fits: (frame: Frame) => boolean
  done(frame: Frame | undefined): void
  /** Its own question went wrong: that is told to whoever asked, not to the carrier that brings the frame. */
  failed(error: unknown): void
}

/** The frames of one connection. */
export class FrameLog {
  readonly #begun = performance.now()
  readonly #taken = new Set<Frame>()
  readonly #waiters = new Set<Waiter>()
  #frames: Frame[] = []
  #ended: string | undefined
  readonly #onFrame: ((frame: Frame) => void) | undefined

  constructor(onFrame?: (frame: Frame) => void) {
    this.#onFrame = onFrame
  }

  get frames(): readonly Frame[] {
    return this.#frames
  }

  /** Forgets what has passed: the connection is used for something else. */
  clear(): void {
    this.#frames = []
    this.#taken.clear()
  }

  add(way: 'out' | 'in', text: string, status?: number): Frame {
    const frame: Frame = { way, at: Math.round(performance.now() - this.#begun), text, value: parsedJson(text), status }
    this.#frames.push(frame)
    this.#onFrame?.(frame)
    if (way === 'out') return frame
    for (const waiter of this.#waiters) if (this.#offered(waiter, frame)) break
    return frame
  }

  #offered(waiter: Waiter, frame: Frame): boolean {
    try {
      if (!waiter.fits(frame)) return false
    } catch (error) {
      this.#waiters.delete(waiter)
      waiter.failed(error)
      return false
    }
    this.#waiters.delete(waiter)
    waiter.done(frame)
    return true
  }

  /** Nobody waits any longer. */
  end(reason: string): void {
    this.#ended = reason
    for (const waiter of this.#waiters) waiter.done(undefined)
    this.#waiters.clear()
  }

  heard(match: Match): readonly Frame[] {
    const fits = matcher(match)
    return this.#frames.filter(frame => frame.way === 'in' && fits(frame))
  }

  async next(match: Match, ms: number): Promise<Frame> {
    const frame = await this.find(match, ms)
    if (frame !== undefined) return frame
    const what = typeof match === 'string' ? match : 'what was expected'
    const why = this.#ended === undefined ? `within ${ms} ms` : `before the connection ended (${clip(this.#ended)})`
    throw new Failed(`The peer did not send ${what} ${why}`, this.#frames.slice(-6))
  }

  /** The next that fits and was not given out yet; undefined: none came in time. */
  async find(match: Match, ms: number): Promise<Frame | undefined> {
    const fits = matcher(match)
    const here = this.#frames.find(frame => frame.way === 'in' && !this.#taken.has(frame) && fits(frame))
    const frame = here ?? (this.#ended === undefined ? await this.#wait(fits, ms) : undefined)
    if (frame !== undefined) this.#taken.add(frame)
    return frame
  }

  #wait(fits: (frame: Frame) => boolean, ms: number): Promise<Frame | undefined> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        fits,
        done(frame) {
          clearTimeout(timer)
          resolve(frame)
        },
        failed(error) {
          clearTimeout(timer)
          reject(error)
        },
      }
      const timer = setTimeout(() => {
        this.#waiters.delete(waiter)
        resolve(undefined)
      }, ms)
      this.#waiters.add(waiter)
    })
  }
}

function matcher(match: Match): (frame: Frame) => boolean {
  if (typeof match === 'string') return ({ value }) => isRecord(value) && value['method'] === match
  return frame => match(isRecord(frame.value) ? frame.value : {}, frame)
}
