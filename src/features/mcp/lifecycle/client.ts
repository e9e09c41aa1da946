/**
 * The client's side of being there: it answers pings, sends them, and lets go of a server that stays silent. Opening itself is the
 * client room's: it decides which era to try.
 */
import { type Clock, type Duration, toMilliseconds } from '../../../core/clock.ts'
import { type ClientSession, defineClientFeature, type RequestOptions } from '../../../engine/client-feature.ts'
import { ConnectionError } from '../../../jsonrpc/connection.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { discover, ping } from './messages.ts'

/** Checks whether the server is there. */
export interface LifecycleClientApi {
  /** Sends a ping and resolves when the server has answered. */
  ping(options?: RequestOptions): Promise<void>
}

/** How often the connection is checked. */
interface HealthCheck {
  /** The interval between two checks. */
  readonly every: Duration
  /** Whether a server that answers slowly is kept. One that cannot be reached is closed in any case. Default false. */
  readonly patient?: boolean
}

/** Options of `connect` for checking the connection. */
export interface LifecycleOptions {
  /**
   * The interval of health checks: a ping, or `server/discover` in revisions without one. The connection is closed if there is no
   * answer. Default: no checks.
   */
  readonly healthCheck?: Duration | HealthCheck
}

/** Pings, and answers pings. */
export const lifecycleClient = defineClientFeature<LifecycleOptions>({
  name: 'lifecycle',
  options: { healthCheck: 'any' },
  setup(kit, { healthCheck }) {
    const health = healthCheck === undefined ? undefined : healthOf(healthCheck)
    const client: LifecycleClientApi = {
      ping: async options => {
        await kit.session.request(ping, {}, kit.send(options))
      },
    }
    let stop = (): void => {}
    return {
      client,
      side: { handlers: [[ping, () => ({})]] },
      opened: session => {
        if (health !== undefined) stop = checkHealth(session, kit.clock, health)
      },
      closing: () => stop(),
    }
  },
})

interface Health {
  readonly everyMs: number
  readonly patient: boolean
}

function healthOf(option: Duration | HealthCheck): Health {
  const { every, patient = false } = typeof option === 'object' ? option : { every: option }
  return { everyMs: toMilliseconds(every, 'healthCheck'), patient }
}

/** Begins at once; gives the way to stop it. */
function checkHealth(session: ClientSession, clock: Clock, { everyMs, patient }: Health): () => void {
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
    const message = `The server did not answer a ping within ${everyMs} ms (healthCheck); the connection was closed`
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
