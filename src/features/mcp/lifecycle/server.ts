/** The server's side of opening: the handshake that a session remembers, or the answer to "what do you speak?". */
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import type { Carrier } from '../../../jsonrpc/connection.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Awaitable } from '../../../jsonrpc/message.ts'
import type { Implementation } from '../../../revisions/index.ts'
import { discover, exit, type InitializeResult, initialize, initialized, initializedDialect, ping, shutdown } from './messages.ts'

export interface LifecycleOptions {
  readonly instructions?: string | undefined
  /** How long a client may keep what discover said. */
  readonly cache: { readonly ttlMs: number; readonly cacheScope: 'public' | 'private' }
  /** The dialect's client has said goodbye; clean when it asked for shutdown first. */
  readonly onExit?: ((clean: boolean, carrier: Carrier) => void) | undefined
}

const goodbye = { make: () => ({ said: false }) }

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
          ...(peer.revision.id === 'draft-2026-v1' ? { serverInfo: engine.info } : {}),
        }),
      ],
      [ping, () => ({})],
      [
        shutdown,
        ({ conversation }: Exchange) => {
          conversation.recall(goodbye).said = true
        },
      ],
      [
        exit,
        ({ engine, conversation, caller }: Exchange) => {
          options.onExit?.(conversation.recall(goodbye).said, caller.carrier)
          if (conversation.session !== undefined) engine.sessions.delete(conversation.session)
          return conversation.connection?.close()
        },
      ],
    ],
    layers: [
      {
        stage: 'enter',
        in: shutdown.in,
        when: ({ conversation }) => conversation.remembered(goodbye)?.said === true,
        run: () => {
          throw new McpError('invalid-request', 'This conversation was shut down; send exit, and open another one')
        },
      },
    ],
  }
}

function ready({ engine, conversation }: Exchange): void {
  conversation.ready = true
  for (const fn of engine.onReady) fn(conversation)
}

function open(exchange: Exchange, more: { instructions?: string }): Awaitable<InitializeResult> {
  const { engine, peer, params } = exchange
  const { revision } = peer
  const conversation = engine.seating.open(exchange)
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
