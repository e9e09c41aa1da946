/**
 * Hearing of changes on every wire: session servers say so unasked (or after a subscribe), stateless ones only on a
 * listen request, which dies with its connection and is made anew.
 */
import { listen } from '../features/mcp/subscriptions/messages.ts'
import { subscribe, unsubscribe } from '../features/mcp/resources/messages.ts'
import { ConnectionError } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { Hub } from './hub.ts'
import type { Session } from './session.ts'

export type ChangeKind = 'tools' | 'prompts' | 'resources'

const filters = {
  tools: { toolsListChanged: true },
  prompts: { promptsListChanged: true },
  resources: { resourcesListChanged: true },
} as const

/** Yields once for each announced change of a list. */
export async function* listChanges(session: Session, hub: Hub, kind: ChangeKind, signal: AbortSignal): AsyncGenerator<void, void, undefined> {
  const stop = listening(session, hub, kind, filters[kind], signal)
  try {
    for await (const _ of hub.follow(kind, stop.signal)) yield
    stop.check()
  } finally {
    stop.end()
  }
}

/** Yields the URI of each announced update of a resource. */
export async function* resourceUpdates(session: Session, hub: Hub, uri: string, signal: AbortSignal): AsyncGenerator<string, void, undefined> {
  const modern = session.opened.revision.era === 'request'
  const stop = listening(session, hub, 'updated', { resourceSubscriptions: [uri] }, signal)
  if (!modern) {
    await session.request(subscribe, { uri })
    session.onReopen(() => {
      if (!stop.signal.aborted) session.request(subscribe, { uri }).catch((error) => session.engine.trace('subscribe-failed', error))
    })
  }
  try {
    for await (const updated of hub.follow('updated', stop.signal)) {
      // A server may name a part of what was subscribed to; an empty name is our own doubt after a break.
      if (updated === '' || updated.startsWith(uri)) yield updated === '' ? uri : updated
    }
    stop.check()
  } finally {
    stop.end()
    if (!modern) session.request(unsubscribe, { uri }).catch((error) => session.engine.trace('unsubscribe-failed', error))
  }
}

interface Listening {
  readonly signal: AbortSignal
  end(): void
  /** Throws what ended the listening, if the server refused it. */
  check(): void
}

/** On stateless wires keeps a listen request open; elsewhere there is nothing to do. */
function listening(session: Session, hub: Hub, topic: string, filter: Readonly<Record<string, unknown>>, signal: AbortSignal): Listening {
  const stop = new AbortController()
  const both = AbortSignal.any([stop.signal, signal])
  let refused: unknown
  if (session.opened.revision.era === 'request') {
    keepListening(session, hub, topic, filter, both).catch((error) => {
      refused = error
      stop.abort()
    })
  }
  return {
    signal: both,
    end: () => stop.abort(),
    check: () => {
      if (refused !== undefined) throw refused
    },
  }
}

async function keepListening(session: Session, hub: Hub, topic: string, filter: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<void> {
  const { clock } = session.engine
  for (let failures = 0; !signal.aborted; ) {
    const began = clock.now()
    try {
      await session.request(listen, { notifications: filter }, { signal, timeoutMs: Number.POSITIVE_INFINITY, totalMs: Number.POSITIVE_INFINITY })
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof McpError && error.code !== undefined) throw error
      if (error instanceof ConnectionError && session.opened.conversation.ended) throw error
    }
    if (signal.aborted) return
    failures = clock.now() - began > 10_000 ? 0 : failures + 1
    await new Promise<void>((resolve) => clock.setTimeout(resolve, Math.min(100 * 2 ** failures, 30_000), true))
    // What happened in between went unheard: better one look too many than one change missed.
    hub.tell(topic)
  }
}
