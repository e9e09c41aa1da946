/**
 * Where a generator's choices come from: random numbers made from a seed, or numbers that were written down before. Every input is a
 * function of its choices, so one that fails can be told by (seed, target, number) and made smaller by making its choices smaller.
 */

/** Zero is always the plainest choice: generators name that first. */
export class Source {
  readonly #replay: readonly number[] | undefined
  readonly #record: number[] | undefined
  #at = 0
  #a = 0
  #b = 0
  #c = 0
  #d = 1

  private constructor(replay: readonly number[] | undefined, record: number[] | undefined) {
    this.#replay = replay
    this.#record = record
  }

  /** The choices of input `index` of a target. `record` takes them down. */
  static random(seed: number, target: string, index: number, record?: number[]): Source {
    const source = new Source(undefined, record)
    source.#a = seed | 0
    source.#b = hash(target)
    source.#c = index | 0
    for (let round = 0; round < 12; round++) source.#next()
    return source
  }

  /** The same choices again; beyond them all are zero. */
  static replay(choices: readonly number[]): Source {
    return new Source(choices, undefined)
  }

  /** From 0 up to, but not including, `bound`. */
  int(bound: number): number {
    const choice = (this.#replay === undefined ? this.#next() : (this.#replay[this.#at++] ?? 0)) % bound
    this.#record?.push(choice)
    return choice
  }

  /** True once in `times`. */
  once(times: number): boolean {
    return this.int(times) === times - 1
  }

  pick<T>(list: readonly T[]): T {
    return list[this.int(list.length)] as T
  }

  list<T>(most: number, make: () => T): T[] {
    const length = this.int(most + 1)
    const made: T[] = []
    for (let at = 0; at < length; at++) made.push(make())
    return made
  }

  /** Small Fast Counter, 32 bits: quick, and good enough for choices. */
  #next(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#d) | 0
    this.#d = (this.#d + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum
    this.#c |= 0
    return sum >>> 0
  }
}

function hash(text: string): number {
  let value = 0x811c9dc5
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193)
  return value
}
