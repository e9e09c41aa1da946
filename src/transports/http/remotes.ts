/**
 * Stand-ins for the connection where a runtime shows none: one object for each principal or remote address, so that
 * what is counted "per connection" has something to hang on. Bounded: the one longest unused gives way.
 */

export interface Remotes {
  /** The same object for the same key; a fresh one without a key, as if every request had its own connection. */
  of(key: string | undefined, remoteAddress?: string): object
}

export function createRemotes(limit = 10_000): Remotes {
  const known = new Map<string, object>()
  return {
    of(key, remoteAddress) {
      if (key === undefined) return {}
      // Read wherever a socket would be asked for it.
      const remote = known.get(key) ?? (remoteAddress === undefined ? {} : { remoteAddress })
      known.delete(key)
      known.set(key, remote)
      if (known.size > limit) {
        for (const oldest of known.keys()) {
          known.delete(oldest)
          break
        }
      }
      return remote
    },
  }
}
