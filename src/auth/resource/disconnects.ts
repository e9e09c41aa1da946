/**
 * Principals that may call no longer. One place tells all who remember them: verified tokens are forgotten, and what is open for them
 * (connections, sessions, streams, requests under way) ends.
 */
import type { Principal } from '../../jsonrpc/connection.ts'

export type MatchesPrincipal = (principal: Principal) => boolean

export class Disconnects {
  readonly #listeners = new Set<(matches: MatchesPrincipal) => void>()

  /** Called in the order in which they came, until the returned function is called. */
  listen(listener: (matches: MatchesPrincipal) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  announce(matches: MatchesPrincipal): void {
    for (const listener of [...this.#listeners]) listener(matches)
  }
}
