/** Lists of several servers that are shown as one of bounded length: none of them can fill it for the others. */

/** Each cut to its share of so many in all. Who wants less leaves the rest to the others. */
export function fairLists<T>(lists: readonly (readonly T[])[], most: number): readonly (readonly T[])[] {
  const shares = new Map<readonly T[], number>()
  let left = most
  for (const list of lists.toSorted((a, b) => a.length - b.length)) {
    const share = Math.min(list.length, Math.floor(left / (lists.length - shares.size)))
    shares.set(list, share)
    left -= share
  }
  return lists.map(list => list.slice(0, shares.get(list)))
}
