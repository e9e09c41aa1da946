/** Lets so many through at a time: hundreds of servers that come up together need not all be in memory half open. */
export class Gate {
  readonly #most: number
  readonly #inside = new Set<string>()
  #waiting: { readonly name: string; readonly enter: () => void }[] = []

  constructor(most: number) {
    this.#most = most
  }

  async enter(name: string): Promise<void> {
    while (this.#inside.size >= this.#most && !this.#inside.has(name))
      await new Promise<void>(enter => this.#waiting.push({ name, enter }))
    this.#inside.add(name)
  }

  /** Also of one that has given up waiting. */
  leave(name: string): void {
    this.#waiting = this.#waiting.filter(each => each.name !== name)
    if (this.#inside.delete(name)) this.#waiting.shift()?.enter()
  }
}
