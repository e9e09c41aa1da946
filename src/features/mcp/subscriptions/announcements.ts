/** Announcements of the server as async iterables. Unread ones of the same subject coalesce, so a slow reader holds no queue. */

/** Said when something may have gone unheard: whoever follows had better look for himself. */
export const maybeMissed = ''

/** The most different subjects that wait for one reader; beyond that they become one doubt. */
const maxUnread = 1_000

/** Who follows what, and who hears of an announcement. */
export class Announcements {
  readonly #following = new Map<string, Set<ChangeQueue>>()
  #end: { readonly reason: unknown } | undefined = undefined

  /** Tells all who follow `topic`. */
  tell(topic: string, subject = maybeMissed): void {
    for (const following of this.#following.get(topic) ?? []) following.hear(subject)
  }

  /** After a break: tells all, whatever they follow. */
  tellDoubt(): void {
    for (const topic of this.#following.keys()) this.tell(topic)
  }

  /** Whoever follows now throws the reason; who follows later may be luckier. */
  fail(reason: unknown): void {
    for (const all of this.#following.values()) for (const following of all) following.end(reason)
  }

  /** There will be no more. Without a reason whoever follows just ends, else it throws that. */
  end(reason?: unknown): void {
    this.#end ??= { reason }
    for (const all of this.#following.values()) for (const following of all) following.end(this.#end.reason)
  }

  /** Hears from this moment on, also before the first value is asked for; until the signal aborts or it is closed. */
  follow(topic: string, signal: AbortSignal | undefined, wants: (subject: string) => boolean = () => true): ChangeQueue {
    const all = this.#following.get(topic) ?? new Set()
    this.#following.set(topic, all)
    const following = new ChangeQueue(wants, signal, () => all.delete(following))
    if (this.#end !== undefined) following.end(this.#end.reason)
    else all.add(following)
    return following
  }
}

/** One reader's ear. */
export class ChangeQueue {
  readonly #wants: (subject: string) => boolean
  readonly #signal: AbortSignal | undefined
  readonly #left: () => void
  readonly #unread = new Set<string>()
  #over: { readonly reason: unknown } | undefined = undefined
  #wake: (() => void)[] = []

  constructor(wants: (subject: string) => boolean, signal: AbortSignal | undefined, left: () => void) {
    this.#wants = wants
    this.#signal = signal
    this.#left = left
    if (signal?.aborted) this.#over = { reason: undefined }
    else signal?.addEventListener('abort', this.#onAbort, { once: true })
  }

  hear(subject: string): void {
    if (this.#over !== undefined || (subject !== maybeMissed && !this.#wants(subject))) return
    if (this.#unread.size >= maxUnread) {
      this.#unread.clear()
      this.#unread.add(maybeMissed)
    } else this.#unread.add(subject)
    this.#wakeReaders()
  }

  /** What was heard before is still given; then the reason is thrown, if there is one. */
  end(reason: unknown): void {
    this.#over ??= { reason }
    this.#wakeReaders()
  }

  /** Nothing more is given. */
  close(): void {
    this.#over = { reason: undefined }
    this.#unread.clear()
    this.#signal?.removeEventListener('abort', this.#onAbort)
    this.#left()
    this.#wakeReaders()
  }

  /** Undefined: it is over. */
  async next(): Promise<string | undefined> {
    for (;;) {
      const [first] = this.#unread
      if (first !== undefined) {
        this.#unread.delete(first)
        return first
      }
      if (this.#over !== undefined) {
        if (this.#over.reason === undefined) return undefined
        throw this.#over.reason
      }
      await new Promise<void>(resolve => this.#wake.push(resolve))
    }
  }

  #wakeReaders(): void {
    for (const wake of this.#wake.splice(0)) wake()
  }

  readonly #onAbort = (): void => this.close()
}

/** What a reader follows, and how to let go of all that was set up for it. */
export interface ChangeSubscription {
  readonly following: ChangeQueue
  close(): void
}

/**
 * What is heard, as an async iterable that begins when first read. Not a generator: one of those cannot be left while it
 * waits for its next value, which is what this does most of the time.
 */
export class AnnouncementReader<T> implements AsyncGenerator<T, void, undefined> {
  readonly #open: () => ChangeSubscription
  readonly #read: (subject: string) => T
  readonly #signal: AbortSignal | undefined
  #followed: ChangeSubscription | undefined = undefined
  #over = false

  constructor(open: () => ChangeSubscription, read: (subject: string) => T, signal: AbortSignal | undefined) {
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
