/** The last position of a log, which a store does not tell: found by doubling steps and then halving them. */
import type { Position, Store } from '../../stores/store.ts'

/** `known` is a position that was there once, to begin from. 0: the log is empty. */
export async function lastPosition(store: Store, log: string, known: Position): Promise<Position> {
  const from = async (position: Position): Promise<Position | undefined> =>
    (await store.read(log, { after: position - 1, limit: 1 }))[0]?.position
  let last = (known > 0 ? await from(known) : undefined) ?? (await from(1)) ?? 0
  if (last === 0) return 0
  let step = 1
  for (let found = await from(last + step); found !== undefined; found = await from(last + step)) {
    last = found
    step *= 2
  }
  for (step /= 2; step >= 1; step /= 2) last = (await from(last + step)) ?? last
  return last
}
