/**
 * What is heard, as an async iterable that begins when first read. Not a generator: one of those cannot be left while it
 * waits for its next value, which is what this does most of the time.
 */
import type { Following } from './announcements.ts'

export interface Followed {
  readonly following: Following
  /** Lets go of all that was set up for it. */
  close(): void
}

export class Reading<T> implements AsyncGenerator<T, void, undefined> {
  readonly #open: () => Followed
  readonly #read: (subject: string) => T
  readonly #signal: AbortSignal | undefined
  #followed: Followed | undefined = undefined
  #over = false

  constructor(open: () => Followed, read: (subject: string) => T, signal: AbortSignal | undefined) {
    this.#open = open
    this.#read = read
    this.#signal = signal
  }

  async next(): Promise<IteratorResult<T, void>> {
    // What was given up before is not even begun.
    if (this.#over || this.#signal?.aborted) return this.return()
    this.#followed ??= this.#open()
    try {
      const subject = await this.#followed.following.next()
      if (subject !== undefined) return { done: false, value: this.#read(subject) }
    } catch (error) {
      this.#close()
      throw error
    }
    return this.return()
  }

  async return(): Promise<IteratorResult<T, void>> {
    this.#close()
    return { done: true, value: undefined }
  }

  async throw(error: unknown): Promise<IteratorResult<T, void>> {
    this.#close()
    throw error
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#close()
  }

  #close(): void {
    this.#over = true
    this.#followed?.close()
    this.#followed = undefined
  }
}
