/** Taking turns: each round is cut into short slices, so that whatever else the machine does hits all alike. */
import type { RoundResult } from './load/round.ts'

/** What some requests cost in all, in microseconds of CPU or another unit, and how many they were. */
export interface Sample {
  readonly cost: number
  readonly count: number
}

export const sampleOf = ({ cpuMicros, requests }: RoundResult): Sample => ({ cost: cpuMicros, count: requests })

/** The cost of a request by name, over one round. Each begins as often as the others, and nobody has two turns in a row. */
export async function turns<Target>(
  order: readonly (readonly [string, Target])[],
  slices: number,
  measure: (target: Target) => Promise<Sample>,
): Promise<Map<string, number>> {
  const sums = new Map(order.map(([name]) => [name, { cost: 0, count: 0 }]))
  for (let slice = 0; slice < slices; slice++) {
    const first = slice % order.length
    for (const [name, target] of [...order.slice(first), ...order.slice(0, first)]) {
      const { cost, count } = await measure(target)
      const sum = sums.get(name)
      if (sum === undefined) continue
      sum.cost += cost
      sum.count += count
    }
  }
  return new Map([...sums].map(([name, { cost, count }]) => [name, cost / count]))
}
