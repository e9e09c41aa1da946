/** The server's side of opening: the handshake that a session remembers, or the answer to "what do you speak?". */
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature } from '../../../engine/server-feature.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Awaitable, Params } from '../../../jsonrpc/message.ts'
import type { Implementation } from '../../../revisions/index.ts'
import {
  discover,
  discoverNamesServer,
  exit,
  type InitializeResult,
  initialize,
  initialized,
  initializedDialect,
  ping,
  shutdown,
} from './messages.ts'

/** Options of `createServer` for the handshake. */
export interface LifecycleServerOptions {
  /** Instructions for the model: how to use this server. Every client gets them. Default: none. */
  readonly instructions?: string
}

interface LifecycleOptions {
  readonly instructions?: string | undefined
  /** How long a client may keep what discover said. */
  readonly cache: { readonly ttlMs: number; readonly cacheScope: 'public' | 'private' }
}

/** Opening and ending conversations. */
export const lifecycleFeature = defineServerFeature<LifecycleServerOptions>({
  name: 'lifecycle',
  options: { instructions: 'string' },
  setup: ({ cache }, { instructions }) => ({ sides: [lifecycleServer({ instructions, cache })] }),
})

const shutdownState = { make: () => ({ said: false }) }

/** Answers what opens, checks and ends a session. */
export function lifecycleServer(options: LifecycleOptions): Side {
  const more = options.instructions === undefined ? {} : { instructions: options.instructions }
  return {
    handlers: [
      [initialize, (exchange: Exchange) => open(exchange, more)],
      [initialized, ready],
      [initializedDialect, ready],
      [
        discover,
        ({ engine, peer, caller }: Exchange) => ({
          supportedVersions: engine.spoken.requests.map(revision => revision.wire),
          capabilities: engine.capabilities(peer.revision, caller, peer),
          ...more,
          ...options.cache,
          ...(discoverNamesServer(peer.revision) ? { serverInfo: engine.info } : {}),
        }),
      ],
      [ping, () => ({})],
      [
        shutdown,
        ({ conversation }: Exchange) => {
          conversation.recall(shutdownState).said = true
        },
      ],
      [
        exit,
        ({ engine, conversation, caller }: Exchange) => {
          // Whoever leaves a process without having asked for its shutdown leaves it with an error, as language servers have it.
          if (!conversation.recall(shutdownState).said && caller.carrier === 'stdio') process.exitCode = 1
          if (conversation.session !== undefined) engine.sessions.delete(conversation.session)
          return conversation.connection?.close()
        },
      ],
    ],
    layers: [
      {
        stage: 'enter',
        in: shutdown.in,
        when: ({ conversation }) => conversation.remembered(shutdownState)?.said === true,
        run: () => {
          throw new McpError('invalid-request', 'This session was shut down; send exit, and open another one')
        },
      },
    ],
  }
}

/** Heard once: what begins with it must not begin anew whenever somebody repeats it. */
function ready({ engine, conversation }: Exchange): void {
  if (conversation.announced) return
  conversation.announced = true
  conversation.ready = true
  for (const fn of engine.onReady) fn(conversation)
}

/**
 * A handshake settles the revision, the capabilities and the name of a client for the whole of its session, and much is kept by
 * them. Whoever wants others opens another session.
 */
function refuseSecond({ peer, session, connection }: Exchange['conversation']): void {
  if (peer === undefined || (session === undefined && connection === undefined)) return
  throw new McpError(
    'invalid-request',
    session === undefined
      ? `This connection is already initialized at revision ${peer.revision.id}; open another connection to initialize again`
      : `This session is already initialized at revision ${peer.revision.id}; to open another one send initialize without Mcp-Session-Id`,
  )
}

/** Characters of what a client says of itself: it is remembered for as long as its session, of which there are thousands. */
const longestSaid = 64 * 1024

function refuseLong({ capabilities, clientInfo }: Params): void {
  const { length } = JSON.stringify([capabilities, clientInfo])
  if (length <= longestSaid) return
  throw new McpError(
    'invalid-params',
    `params.capabilities and params.clientInfo have ${length} characters; the limit is ${longestSaid}. Send less`,
  )
}

function open(exchange: Exchange, more: { instructions?: string }): Awaitable<InitializeResult> {
  const { engine, peer, params } = exchange
  const { revision } = peer
  refuseSecond(exchange.conversation)
  refuseLong(params)
  const conversation = engine.sessionLookup.open(exchange)
  conversation.peer = {
    revision,
    capabilities: params['capabilities'] as Readonly<Record<string, unknown>>,
    info: params['clientInfo'] as Implementation,
    logLevel: undefined,
  }
  const result = {
    protocolVersion: revision.wire,
    capabilities: engine.capabilities(revision, exchange.caller, conversation.peer),
    serverInfo: engine.info,
    ...more,
  }
  const { sharing } = engine
  return sharing === undefined || conversation.session === undefined ? result : sharing.keep(conversation).then(() => result)
}
