/** Work that must not overlap, in line by a key. */
export interface KeyedQueue {
  /** Runs when all that came before under this key has ended, well or not. */
  inLine<T>(key: string, work: () => Promise<T>): Promise<T>
}

export function createKeyedQueue(): KeyedQueue {
  const tails = new Map<string, Promise<unknown>>()
  return {
    inLine: (key, work) => {
      const before = tails.get(key) ?? Promise.resolve()
      const mine = before.then(work, work)
      tails.set(key, mine)
      const leave = (): void => {
        if (tails.get(key) === mine) tails.delete(key)
      }
      mine.then(leave, leave)
      return mine
    },
  }
}
