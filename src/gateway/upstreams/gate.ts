/** Lets so many through at a time: hundreds of servers that come up together need not all be in memory half open. */
export class Gate {
  readonly #most: number
  readonly #inside = new Set<string>()
  readonly #waiting: (() => void)[] = []

  constructor(most: number) {
    this.#most = most
  }

  async enter(name: string): Promise<void> {
    while (this.#inside.size >= this.#most && !this.#inside.has(name))
      await new Promise<void>(resolve => this.#waiting.push(resolve))
    this.#inside.add(name)
  }

  leave(name: string): void {
    if (this.#inside.delete(name)) this.#waiting.shift()?.()
  }
}
