/** The hosts that a server has: those with a session, and those that listen. */
import type { Conversation, Memory } from '../../../engine/conversation.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declared } from '../../../engine/extensions.ts'
import type { Method } from '../../../engine/method.ts'
import { type Id, isRecord } from '../../../jsonrpc/message.ts'
import type { Capabilities, Implementation, Peer } from '../../../revisions/index.ts'
import { liveExtension, mcplName } from '../feature-sets/messages.ts'
import type { HostCall, HostDialect, KeptSelected, LiveHost, Selected } from './messages.ts'

interface HostsParts<S extends KeptSelected> {
  readonly engine: () => Engine
  readonly form: SetsForm | undefined
  /** What a host has selected with what it declared. */
  readonly selected: (declared: Capabilities) => S
  /** Those that listen, on wires without sessions. */
  readonly listening: () => Iterable<LiveHost>
}

interface Seat<S> {
  readonly host: SessionHost
  readonly selection: S
}

interface Hosts<S> {
  readonly memory: Memory<unknown>
  dialectOf(peer: Peer): HostDialect | undefined
  /** All that live, whether they can be reached now or not. */
  all(): Iterable<LiveHost>
  /** The host of a session; undefined for a plain one. */
  seat(conversation: Conversation): Seat<S> | undefined
  /** Makes known to other processes what a host has selected. */
  keep(exchange: Exchange): void
}

/** Keeps the hosts that are connected to a server. */
export function createHosts<S extends KeptSelected>(parts: HostsParts<S>): Hosts<S> {
  const dialect = ({ revision, capabilities, info }: Peer): HostDialect | undefined => {
    const said = liveIn({ revision, capabilities })
    return said === undefined ? undefined : hostDialectOf(said, info, parts.form)
  }
  const memory: Memory<Seat<S>> = {
    make: conversation => {
      const peer = conversation.peer as Peer
      const said = liveIn(peer) ?? {}
      const selection = parts.selected(said)
      return {
        selection,
        host: new SessionHost(parts.engine(), conversation, hostDialectOf(said, peer.info, parts.form), selection),
      }
    },
    key: 'live',
    save: ({ selection }) => selection.save(),
    restore: ({ selection }, saved) => selection.restore(saved),
  }
  const seat = (conversation: Conversation): Seat<S> | undefined => {
    const { peer } = conversation
    if (peer === undefined || peer.revision.era !== 'session' || liveIn(peer) === undefined) return undefined
    return conversation.recall(memory)
  }
  return {
    memory: memory as Memory<unknown>,
    dialectOf: dialect,
    seat,
    keep: ({ conversation }) => void conversation.persist?.(memory as Memory<unknown>),
    *all() {
      const { connected, sessions } = parts.engine()
      for (const conversation of [...connected, ...sessions.all()]) {
        const found = conversation.ended ? undefined : seat(conversation)
        if (found !== undefined) yield found.host
      }
      yield* parts.listening()
    },
  }
}

// How a host speaks MCP Live, told from what it declares. The version is a hint: real hosts say one and do another.

type SetsForm = 'object' | 'array' | 'auto'

/** What a host declared of MCP Live; undefined for a plain one. */
export function liveIn(peer: Pick<Peer, 'capabilities' | 'revision'>): Readonly<Record<string, unknown>> | undefined {
  if (peer.revision.era === 'request') return declared(peer, liveExtension)
  const { experimental } = peer.capabilities
  const said = isRecord(experimental) ? experimental[mcplName] : undefined
  return isRecord(said) ? said : said === true ? {} : undefined
}

/** Reads a host's dialect from its capabilities and its name. */
export function hostDialectOf(said: Capabilities, info: Implementation | undefined, form: SetsForm = 'auto'): HostDialect {
  const version = typeof said['version'] === 'string' ? said['version'] : '0.2'
  const label = labelOf(version)
  return {
    version,
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

/** Hosts built on the first cores have words of their own, or are known by name. */
function readsArrays(said: Capabilities, info: Implementation | undefined, label: HostDialect['label']): boolean {
  if ('scopedAccess' in said || 'streamObserver' in said) return true
  return said['channels'] === true && label !== '0.5' && info?.name.startsWith('mcpl-harness') === true
}

// A host that opened a session: asked by requests on its connection, or on the stream that it holds open.

class SessionHost implements LiveHost {
  readonly dialect: HostDialect
  readonly selected: Selected
  readonly #engine: Engine
  readonly #conversation: Conversation
  readonly #chunks = new Map<Id, NonNullable<HostCall['onChunk']>>()

  constructor(engine: Engine, conversation: Conversation, dialect: HostDialect, selected: Selected) {
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
    // What is asked inside a call belongs to its stream, which may break and be taken up again.
    if (lane !== undefined && exchange !== undefined) this.#engine.streaming(exchange)
    let id: Id | undefined
    try {
      return await this.#engine.call(this.#conversation, method, params, {
        ...(signal === undefined ? {} : { signal }),
        ...(timeoutMs === undefined ? {} : { timeoutMs }),
        ...(lane === undefined ? {} : { lane }),
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

  /** A part of an answer that is still to come. After the answer nobody waits for it. */
  chunk(id: Id, index: number, delta: string): void {
    if (this.#conversation.calls?.has(id) === true) this.#chunks.get(id)?.(index, delta)
  }
}
