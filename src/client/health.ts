/** Pings, or where the wire has none asks who is there; a server that stays silent, or is gone, is let go. */
import type { Clock } from '../core/clock.ts'
import { type Duration, toMilliseconds } from '../core/duration.ts'
import { discover, ping } from '../features/mcp/lifecycle/messages.ts'
import { ConnectionError } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { HealthCheck } from './options.ts'
import type { Session } from './session.ts'

interface Health {
  readonly everyMs: number
  readonly patient: boolean
}

export function healthOf(option: Duration | HealthCheck): Health {
  const { every, patient = false } = typeof option === 'object' ? option : { every: option }
  return { everyMs: toMilliseconds(every, 'healthCheck'), patient }
}

/** Begins at once; gives the way to stop it. */
export function checkHealth(session: Session, clock: Clock, { everyMs, patient }: Health): () => void {
  let stopped = false
  let cancel = clock.setTimeout(beat, everyMs, true)

  async function beat(): Promise<void> {
    const { conversation, revision } = session.opened
    if (stopped || conversation.ended) return
    try {
      if (ping.in.includes(revision.id)) await session.request(ping, {}, { timeoutMs: everyMs })
      else await session.request(discover, {}, { timeoutMs: everyMs })
    } catch (error) {
      if (!isSignOfLife(error, patient)) return letGo(error)
    }
    if (!stopped) cancel = clock.setTimeout(beat, everyMs, true)
  }

  async function letGo(cause: unknown): Promise<void> {
    if (stopped) return
    session.engine.trace('unhealthy', cause)
    const message = `The server did not answer a ping within ${everyMs} ms (healthCheck) and was let go`
    await session.close(new ConnectionError('lost', message, { cause }))
  }

  return () => {
    stopped = true
    cancel()
  }
}

/** What a proxy says of a server behind it that is not there. */
const gone: ReadonlySet<number | undefined> = new Set([502, 504])

/** Any answer is one, also a refusal. */
function isSignOfLife(error: unknown, patient: boolean): boolean {
  if (error instanceof McpError) return error.kind !== 'timeout' || patient
  if (!(error instanceof ConnectionError)) return false
  return error.kind === 'unauthorized' || (error.kind === 'status' && !gone.has(error.status))
}
