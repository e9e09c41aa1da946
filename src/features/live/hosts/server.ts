/** The hosts of a server: those with a session, and those that listen. Also detects the dialect of a host from its declarations. */
import type { Conversation, ConversationSlot } from '../../../engine/conversation.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaredSettings } from '../../../engine/extensions.ts'
import type { Method } from '../../../engine/method.ts'
import { given, type Id, isRecord, type Params } from '../../../jsonrpc/message.ts'
import type { Capabilities, Implementation, Peer } from '../../../revisions/index.ts'
import { liveExtension, mcplName } from '../feature-sets/messages.ts'
import type { HostCall, HostDialect, HostSelectionView, LiveHost, TransferableSelection } from './messages.ts'

interface HostsParts<S extends TransferableSelection> {
  readonly engine: () => Engine
  /** How sets are declared, if the author has fixed it. */
  readonly form: SetsForm | undefined
  /** The selection that follows from a handshake. */
  readonly selected: (declared: Capabilities) => S
  /** Called when the session of a host has ended. */
  readonly left: () => void
  /** Hosts that listen, on stateless wires. */
  readonly listening: () => Iterable<LiveHost>
}

interface HostRegistration<S> {
  readonly host: SessionHost
  readonly selection: S
}

/** Creates the registry of hosts. */
export function createHosts<S extends TransferableSelection>(parts: HostsParts<S>) {
  const memory: ConversationSlot<HostRegistration<S>> = {
    make: conversation => {
      const peer = conversation.peer as Peer
      const said = liveIn(peer) ?? {}
      const selection = parts.selected(said)
      const dialect = hostDialectOf(said, peer.info, parts.form)
      conversation.onEnd(parts.left)
      return { selection, host: new SessionHost(parts.engine(), conversation, dialect, selection) }
    },
    key: 'live',
    save: ({ selection }) => selection.save(),
    restore: ({ selection }, saved) => selection.restore(saved),
  }
  /** The host of a session; undefined for a plain client. */
  const registration = (conversation: Conversation): HostRegistration<S> | undefined => {
    const { peer } = conversation
    if (peer === undefined || peer.revision.era !== 'session' || liveIn(peer) === undefined) return undefined
    return conversation.recall(memory)
  }
  return {
    /** Makes selections part of what a session remembers. */
    memory: memory as ConversationSlot<unknown>,
    /** The dialect of a peer; undefined for a plain client. */
    dialectOf: (peer: Peer): HostDialect | undefined => {
      const said = liveIn(peer)
      return said && hostDialectOf(said, peer.info, parts.form)
    },
    /** The dialect of a peer that listens, and declares more by that. */
    listeningDialect: (peer: Peer, more: Params): HostDialect =>
      hostDialectOf({ ...liveIn(peer), ...more }, peer.info, parts.form),
    registration,
    /** Stores the selection of a host for other processes. */
    keep: ({ conversation }: Exchange): void => void conversation.persist?.(memory as ConversationSlot<unknown>),
    /** All connected hosts, reachable or not. */
    *all(): Iterable<LiveHost> {
      const { connected, sessions } = parts.engine()
      for (const conversation of [...connected, ...sessions.all()]) {
        const found = conversation.ended ? undefined : registration(conversation)
        if (found !== undefined) yield found.host
      }
      yield* parts.listening()
    },
  }
}

// The dialect of a host, from its declarations. The version is only a hint, because hosts announce one version and implement another.

type SetsForm = 'object' | 'array' | 'auto'

/** What a host declared about MCP Live; undefined for a plain client. */
function liveIn(peer: Peer): Readonly<Record<string, unknown>> | undefined {
  if (peer.revision.era === 'request') return declaredSettings(peer, liveExtension)
  const { experimental } = peer.capabilities
  const said = isRecord(experimental) ? experimental[mcplName] : undefined
  return isRecord(said) ? said : said === true ? {} : undefined
}

/** Detects a host's dialect from its declarations and name. */
function hostDialectOf(said: Capabilities, info: Implementation | undefined, form: SetsForm = 'auto'): HostDialect {
  const version = typeof said['version'] === 'string' ? said['version'] : '0.2'
  const label = labelOf(version)
  return {
    label,
    arrays: form === 'array' || (form === 'auto' && readsArrays(said, info, label)),
    source: /^0\.[12](\.|$)/.test(version),
  }
}

function labelOf(version: string): HostDialect['label'] {
  const [major = 0, minor = 2] = version.split('.').map(Number)
  if (major > 0 || minor >= 5) return '0.5'
  return minor === 4 ? '0.4' : minor === 3 ? '0.3' : '0.2'
}

/** Hosts built on the first cores are recognised by capabilities of their own, or by name. */
function readsArrays(said: Capabilities, info: Implementation | undefined, label: HostDialect['label']): boolean {
  if ('scopedAccess' in said || 'streamObserver' in said) return true
  return said['channels'] === true && label !== '0.5' && info?.name.startsWith('mcpl-harness') === true
}

// A host with a session: reached by requests on its connection or on its open stream.

class SessionHost implements LiveHost {
  readonly dialect: HostDialect
  readonly selected: HostSelectionView
  readonly #engine: Engine
  readonly #conversation: Conversation
  readonly #chunks = new Map<Id, NonNullable<HostCall['onChunk']>>()

  constructor(engine: Engine, conversation: Conversation, dialect: HostDialect, selected: HostSelectionView) {
    this.#engine = engine
    this.#conversation = conversation
    this.dialect = dialect
    this.selected = selected
  }

  get principal(): string | undefined {
    return this.#conversation.caller.principal?.id
  }

  get gone(): boolean {
    return this.#conversation.ended
  }

  get reachable(): boolean {
    const { ready, ended, connection, heard } = this.#conversation
    return ready && !ended && (connection !== undefined || heard)
  }

  async request<P, R>(method: Method<P, R>, params: P, options: HostCall = {}): Promise<R> {
    const { signal, timeoutMs, exchange, onChunk } = options
    const lane = this.#conversation.connection === undefined ? exchange?.aside : undefined
    // A request made during a call belongs to the call's stream, which can be resumed.
    if (lane !== undefined && exchange !== undefined) this.#engine.streaming(exchange)
    let id: Id | undefined
    try {
      return await this.#engine.call(this.#conversation, method, params, {
        ...given({ signal, timeoutMs, lane }),
        onSent: sent => {
          id = sent
          if (onChunk !== undefined) this.#chunks.set(sent, onChunk)
        },
      })
    } finally {
      if (id !== undefined) this.#chunks.delete(id)
    }
  }

  notify<P>(method: Method<P, undefined>, params: P): boolean {
    return this.reachable && this.#engine.notify(this.#conversation, method, params)
  }

  /** Hands a piece of an answer to its request, if that is still pending. */
  chunk(id: Id, index: number, delta: string): void {
    if (this.#conversation.calls?.has(id) === true) this.#chunks.get(id)?.(index, delta)
  }
}
