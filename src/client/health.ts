/** Pings where the wire has them; a server that stays silent is let go. */
import type { Clock } from '../core/clock.ts'
import { ping } from '../features/mcp/lifecycle/messages.ts'
import { ConnectionError } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { Session } from './session.ts'

/** Begins at once; gives the way to stop it. */
export function checkHealth(session: Session, clock: Clock, everyMs: number): () => void {
  let stopped = false
  let cancel = clock.setTimeout(beat, everyMs, true)

  async function beat(): Promise<void> {
    const { conversation, revision } = session.opened
    if (stopped || conversation.ended) return
    try {
      if (ping.in.includes(revision.id)) await session.request(ping, {}, { timeoutMs: everyMs })
    } catch (error) {
      // Any answer is a sign of life.
      if (!(error instanceof McpError) || error.kind === 'timeout') return letGo(error)
    }
    if (!stopped) cancel = clock.setTimeout(beat, everyMs, true)
  }

  async function letGo(cause: unknown): Promise<void> {
    if (stopped) return
    session.engine.trace('unhealthy', cause)
    await session.close(
      new ConnectionError('lost', `The server did not answer a ping within ${everyMs} ms and was let go`, { cause }),
    )
  }

  return () => {
    stopped = true
    cancel()
  }
}
