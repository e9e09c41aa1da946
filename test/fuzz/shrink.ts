/** A failing input made smaller: fewer choices, then lower ones, as long as it still fails. */

/** `fails` is asked at most `budget` times, and not beyond the time. */
export async function shrink(
  choices: readonly number[],
  fails: (choices: readonly number[]) => Promise<boolean>,
  budget = 3_000,
  budgetMs = 30_000,
): Promise<readonly number[]> {
  let best = choices
  let left = budget
  const end = performance.now() + budgetMs
  const better = async (candidate: readonly number[]): Promise<boolean> => {
    if (left-- <= 0 || performance.now() > end || !(await fails(candidate))) return false
    best = candidate
    return true
  }
  for (let before = ''; left > 0 && performance.now() < end && before !== JSON.stringify(best); ) {
    before = JSON.stringify(best)
    for (let size = Math.max(1, best.length >> 1); size >= 1; size >>= 1) {
      for (let at = best.length - size; at >= 0; at -= size) await better([...best.slice(0, at), ...best.slice(at + size)])
    }
    for (let at = 0; at < best.length; at++) {
      for (const lower of [0, (best[at] ?? 0) % 256, (best[at] ?? 0) >> 1, (best[at] ?? 0) - 1]) {
        if (lower >= 0 && lower < (best[at] ?? 0) && (await better(best.with(at, lower)))) break
      }
    }
  }
  return best
}
