/** Waiting in tests for what happens elsewhere. */
import { vi } from 'vitest'

/** As long as `expect.poll` waits (vitest.config.ts): the second that `vi.waitFor` waits by itself is too short on a busy machine. */
const patience = { timeout: 40_000, interval: 20 }

/** Repeats a check until it no longer throws, and returns its value. Rejects with its last error where it never passes. */
export function until<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, patience)
}
