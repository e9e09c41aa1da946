/** One hostile input: what is done to the peer under test, and whether it bore it well. */

export interface Verdict {
  readonly well: boolean
  /** What was seen: an answer, a figure, or what should have been there instead. */
  readonly detail: string
  /** Right but for its time, which others on the machine take too: to be judged again at another moment, and not well until then. */
  readonly slow?: boolean
}

export interface HostileCase {
  /** Short and stable: `A13`, `H10`. */
  readonly key: string
  /** A sentence: what the peer does, and what has to come of it. */
  readonly name: string
  /** It mostly waits: it may run beside the others of its suite. */
  readonly patient?: boolean
  run(): Promise<Verdict>
}

/** The same inputs against one target: a listener in one era, or our client. */
export interface HostileSuite {
  readonly title: string
  /** Starts what is under attack; what it returns ends it. */
  open(): Promise<{ readonly cases: readonly HostileCase[]; close(): Promise<void> }>
}
