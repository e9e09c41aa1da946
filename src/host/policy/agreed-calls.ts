/**
 * Calls that the user has just agreed to, by the host's own question. A tool that wants a confirmation of the same call need not ask
 * again: it is the same person, the same tool and the same arguments, a moment later. Each counts once.
 */
import { digestOf } from './bound.ts'

interface AgreedCall {
  readonly server: string
  readonly tool: string
  readonly payload: unknown
}

/** Those that are never asked about again are forgotten, the oldest first. */
const most = 100

export class AgreedCalls {
  readonly #agreed = new Set<string>()

  /** The user has agreed to exactly this call. What is returned forgets it, once the call is over. */
  add(call: AgreedCall): () => void {
    const digest = digestFor(call)
    const [oldest] = this.#agreed.size >= most ? this.#agreed : []
    if (oldest !== undefined) this.#agreed.delete(oldest)
    this.#agreed.add(digest)
    return () => this.#agreed.delete(digest)
  }

  /** Whether the user has just agreed to it; the next question about it is asked. */
  take(call: AgreedCall): boolean {
    return this.#agreed.delete(digestFor(call))
  }
}

function digestFor({ server, tool, payload }: AgreedCall): string {
  return digestOf({ server, tool, payload })
}
