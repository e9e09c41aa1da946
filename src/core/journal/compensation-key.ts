/** The idempotency key under which a step is taken back: the same for every attempt, and never that of another step. */
import { digestText } from '../digest.ts'

/** What every server takes as a key. */
const plain = /^[a-zA-Z0-9_\-:.]{1,128}$/

export async function compensationKey(unit: string, step: string): Promise<string> {
  const key = `compensate-${unit}-${step}`
  // The last dash says where the two meet, as long as the step has none: else "a" and "b-1" would be "a-b" and "1".
  if (plain.test(key) && !step.includes('-')) return key
  return `compensate-${await digestText(JSON.stringify([unit, step]))}`
}
