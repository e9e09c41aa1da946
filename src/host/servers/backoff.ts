/** How long to wait before a server is tried again. */

export const reviving = {
  firstMs: 500,
  mostMs: 60_000,
  /** A connection that lasted this long was a good one: the next failure is a first one. */
  steadyMs: 30_000,
} as const

/** Doubles with each failure in a row. Half of it is chance, so that many that fell together do not come back together. */
export function reviveDelay(failures: number, random: () => number, mostMs: number = reviving.mostMs): number {
  const most = Math.min(reviving.firstMs * 2 ** Math.min(Math.max(0, failures - 1), 20), mostMs)
  return Math.round(most / 2 + (random() * most) / 2)
}
