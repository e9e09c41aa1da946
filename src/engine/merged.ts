/** Capabilities that several features declare, as one. */
import { isRecord } from '../jsonrpc/message.ts'
import type { Capabilities } from '../revisions/index.ts'

/** One level deep: several may add to one capability. */
export function merged(declared: readonly (Capabilities | undefined)[]): Capabilities {
  const all: Record<string, unknown> = {}
  for (const some of declared) {
    for (const [name, value] of Object.entries(some ?? {})) {
      const before = all[name]
      all[name] = isRecord(before) && isRecord(value) ? { ...before, ...value } : value
    }
  }
  return all
}
