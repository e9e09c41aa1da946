/** The few statistics the bench prints. Medians, because a noisy neighbour spoils a mean. */

export function quantile(values: readonly number[], q: number): number {
  if (values.length === 0) return Number.NaN
  const sorted = [...values].sort((a, b) => a - b)
  const place = (sorted.length - 1) * q
  const low = sorted[Math.floor(place)] ?? Number.NaN
  const high = sorted[Math.ceil(place)] ?? Number.NaN
  return low + (high - low) * (place - Math.floor(place))
}

export const median = (values: readonly number[]): number => quantile(values, 0.5)

/** Latencies of one round. A fixed block of numbers, so that recording makes no garbage in the load generator. */
export class Latencies {
  readonly #values = new Float64Array(1 << 18)
  #count = 0

  add(milliseconds: number): void {
    // Past the capacity the oldest are overwritten: still a fair sample of the round.
    this.#values[this.#count++ & (this.#values.length - 1)] = milliseconds
  }

  clear(): void {
    this.#count = 0
  }

  quantiles(): { p50: number; p99: number } {
    const sorted = this.#values.slice(0, Math.min(this.#count, this.#values.length)).sort()
    const at = (q: number): number => sorted[Math.floor((sorted.length - 1) * q)] ?? Number.NaN
    return { p50: at(0.5), p99: at(0.99) }
  }
}
