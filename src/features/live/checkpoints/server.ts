/**
 * Server side of state and checkpoints (MCP Live 0.2 §8): reads the state that a call carries, reports the new state with the result,
 * and rolls back. Also signs checkpoint ids, and remembers states for hosts that do not send them.
 */
import { fromBase64Url, toBase64Url } from '../../../core/base64.ts'
import { digest } from '../../../core/digest.ts'
import type { Trace } from '../../../core/log.ts'
import { Problem, problemText } from '../../../core/problem.ts'
import type { Conversation } from '../../../engine/conversation.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type Awaitable, isRecord } from '../../../jsonrpc/message.ts'
import { put, type Store } from '../../../stores/store.ts'
import { type FeatureSetFacts, liveError, liveExtension } from '../feature-sets/messages.ts'
import type { LiveCaller } from '../hosts/messages.ts'
import { rollbackState, type StateReport } from './messages.ts'

/** Rolls back to a checkpoint. Returns false if it is unknown; throws if it fails. */
export type RollbackHandler = (checkpoint: string) => Awaitable<undefined | boolean>

/** What checkpoints need to know of a feature set. */
interface StatefulSet {
  readonly facts: FeatureSetFacts
  readonly rollback: RollbackHandler | undefined
}

interface CheckpointsParts {
  /** Looks a set up by name. */
  readonly set: (name: string) => StatefulSet | undefined
  readonly caller: (exchange: Exchange) => LiveCaller | undefined
  readonly store: () => Promise<Store>
  readonly trace: Trace
}

interface MadeState {
  readonly value: unknown
  /** The change as a JSON patch, if known. */
  readonly steps: readonly unknown[] | undefined
}

/** Reads what a call carries, from its params or from the copy in `_meta`. */
export function givenWith({ params, meta }: Pick<Exchange, 'params' | 'meta'>): {
  readonly state: unknown
  readonly checkpoint: string | undefined
  readonly parent: string | undefined
  /** The host knows the tool's set, so missing state means that there is none. */
  readonly knows: boolean
} {
  const live = meta?.[liveExtension]
  const copy = isRecord(live) ? live : {}
  const checkpoint = params['checkpoint'] ?? copy['checkpoint']
  return {
    state: params['state'] ?? copy['state'],
    checkpoint: typeof checkpoint === 'string' ? checkpoint : undefined,
    parent: typeof copy['parent'] === 'string' ? copy['parent'] : undefined,
    knows: 'state' in params || 'state' in copy || typeof copy['featureSet'] === 'string',
  }
}

/** Adds a state report to a result, with its copy in `_meta`. */
export function reported<R extends object>(result: R, featureSet: string, state: StateReport): R {
  const meta = '_meta' in result && isRecord(result._meta) ? result._meta : {}
  const live = isRecord(meta[liveExtension]) ? meta[liveExtension] : {}
  return { ...result, state, _meta: { ...meta, [liveExtension]: { ...live, featureSet, state } } }
}

/** Limit of states recognised by digest, for hosts that do not send the parent checkpoint. */
const remembered = 1_000

/** Creates the server side of checkpoints. */
export function checkpointsServer(parts: CheckpointsParts) {
  const ids = checkpointIds(parts.store)
  const byContent = new Map<string, string>()
  const unsent = new UnsentStates()
  const contentKey = async (featureSet: string, state: unknown): Promise<string> => digest([featureSet, state])
  const side: Side = { handlers: [[rollbackState, exchange => rollback(parts, ids, unsent, exchange)]] }
  return {
    side,
    /** The state that a call of a host-state set starts from. */
    open: (exchange: Exchange, featureSet: string): unknown => {
      const given = givenWith(exchange)
      const instead = unsent.of(exchange, featureSet, given)
      return instead === undefined ? given.state : instead.value
    },
    /** The report for a result, after the call has changed the state. */
    report: async (exchange: Exchange, featureSet: string, { value, steps }: MadeState): Promise<StateReport> => {
      const given = givenWith(exchange)
      const checkpoint = await ids.issue(featureSet)
      const instead = unsent.of(exchange, featureSet, given)
      unsent.keep(exchange, featureSet, checkpoint, value)
      // A host that sent no state may have none, so it gets the whole state instead of a patch.
      if (instead !== undefined) return { checkpoint, parent: instead.checkpoint, data: value ?? null }
      const parent = given.state === undefined ? null : (given.parent ?? byContent.get(await contentKey(featureSet, given.state)))
      if (!isRecord(exchange.meta?.[liveExtension])) {
        byContent.set(await contentKey(featureSet, value), checkpoint)
        const [oldest] = byContent.keys()
        if (byContent.size > remembered && oldest !== undefined) byContent.delete(oldest)
      }
      // A patch is usable only if the host knows its base.
      const patches = steps !== undefined && steps.length > 0 && given.state !== undefined && parent !== undefined
      const body = patches ? { patch: steps } : { data: value ?? null }
      return { checkpoint, ...(parent === undefined ? {} : { parent }), ...body }
    },
  }
}

/** Handles `state/rollback`. */
async function rollback(
  { set, caller, trace }: CheckpointsParts,
  ids: ReturnType<typeof checkpointIds>,
  unsent: UnsentStates,
  exchange: Exchange,
) {
  const { featureSet, checkpoint } = exchange.params as { featureSet: string; checkpoint: string }
  if (caller(exchange) === undefined)
    throw new McpError('method-not-found', `Only hosts that declare MCP Live can send ${rollbackState.name}`)
  const found = set(featureSet)
  if (found === undefined) throw liveError('feature-set-unknown', { featureSet: clip(featureSet) })
  const failed = (reason: string) => ({ checkpoint, success: false, reason })
  if (found.facts.rollback !== true) return failed(`The feature set "${featureSet}" does not support rollback`)
  const { rollback: handler, facts } = found
  if (handler === undefined && facts.hostState !== true)
    return failed(`The feature set "${featureSet}" cannot roll back: it has no onRollback`)
  // Host-kept state needs no action by the server: the next call carries the older state.
  const known = facts.hostState !== true || (await ids.issued(featureSet, checkpoint))
  if (known && facts.hostState === true && !unsent.has(exchange, featureSet, checkpoint))
    return failed('The host sends no state with its calls, and the server no longer has the state of this checkpoint')
  try {
    if (known && (handler === undefined || (await handler(checkpoint)) !== false)) {
      unsent.move(exchange, featureSet, checkpoint)
      return { checkpoint, success: true }
    }
  } catch (error) {
    trace('rollback-failed', { featureSet, error }, exchange.caller)
    return failed(error instanceof Problem ? problemText(error) : 'The server failed to roll back')
  }
  throw liveError('checkpoint-unknown', { checkpoint: clip(checkpoint, 200) })
}

// Some hosts keep state but cannot send it, because they do not know which set a tool belongs to. For them the server remembers recent
// states per conversation; otherwise each call would start from nothing. Once a host sends state or names the set, nothing is
// remembered for it.

interface StoredCheckpoints {
  /** The host sends states itself. */
  sends: boolean
  /** By checkpoint, oldest first. */
  readonly states: Map<string, { readonly value: unknown; readonly size: number }>
  current: string | undefined
}

interface Unsent {
  readonly checkpoint: string
  readonly value: unknown
}

/** Limits per set and host: number of states, and characters of JSON excluding the newest. */
const mostStates = 16
const mostCharacters = 1024 * 1024

class UnsentStates {
  readonly #hosts = new WeakMap<Conversation, Map<string, StoredCheckpoints>>()
  /** The base of each running call, so that report and call agree. */
  readonly #opened = new WeakMap<Exchange, { readonly unsent: Unsent | undefined }>()

  /** The remembered state for a call that brought none; undefined if the call's own state applies. */
  of(exchange: Exchange, featureSet: string, given: ReturnType<typeof givenWith>): Unsent | undefined {
    const opened = this.#opened.get(exchange)
    if (opened !== undefined) return opened.unsent
    const unsent = this.#look(exchange, featureSet, given)
    this.#opened.set(exchange, { unsent })
    return unsent
  }

  #look(exchange: Exchange, featureSet: string, { checkpoint, knows }: ReturnType<typeof givenWith>): Unsent | undefined {
    // Without a session, two calls cannot be attributed to one host.
    if (exchange.peer.revision.era !== 'session') return undefined
    const stored = this.#of(exchange, featureSet)
    if (knows) {
      stored.sends = true
      stored.states.clear()
      stored.current = undefined
      return undefined
    }
    // Some hosts send only the checkpoint.
    const at = checkpoint ?? stored.current
    if (at === undefined) return undefined
    const found = stored.states.get(at)
    if (found !== undefined) return { checkpoint: at, value: found.value }
    throw liveError('checkpoint-unknown', { checkpoint: clip(at, 200) })
  }

  /** Remembers the state that a call has left. */
  keep(exchange: Exchange, featureSet: string, checkpoint: string, value: unknown): void {
    if (exchange.peer.revision.era !== 'session') return
    const stored = this.#of(exchange, featureSet)
    if (stored.sends) return
    stored.states.set(checkpoint, { value, size: JSON.stringify(value ?? null).length })
    stored.current = checkpoint
    let characters = 0
    for (const [at, [name, { size }]] of [...stored.states].reverse().entries()) {
      if (at > 0) characters += size
      if (at >= mostStates || characters > mostCharacters) stored.states.delete(name)
    }
  }

  /** Whether a rollback to this checkpoint can work for this host. */
  has(exchange: Exchange, featureSet: string, checkpoint: string): boolean {
    const stored = this.#hosts.get(exchange.conversation)?.get(featureSet)
    return stored === undefined || stored.current === undefined || stored.states.has(checkpoint)
  }

  /** Makes the checkpoint current after a rollback. */
  move(exchange: Exchange, featureSet: string, checkpoint: string): void {
    const stored = this.#hosts.get(exchange.conversation)?.get(featureSet)
    if (stored?.states.has(checkpoint) === true) stored.current = checkpoint
  }

  #of({ conversation }: Exchange, featureSet: string): StoredCheckpoints {
    const sets = this.#hosts.get(conversation) ?? new Map<string, StoredCheckpoints>()
    this.#hosts.set(conversation, sets)
    const stored = sets.get(featureSet) ?? { sends: false, states: new Map(), current: undefined }
    sets.set(featureSet, stored)
    return stored
  }
}

const keyName = 'live/checkpoint-key'
const tagBytes = 12

/** Issues checkpoint ids with an HMAC tag, so that they can be verified without being stored. */
function checkpointIds(store: () => Promise<Store>) {
  let loading: Promise<CryptoKey> | undefined
  const key = (): Promise<CryptoKey> => {
    loading ??= load(store).catch(error => {
      loading = undefined
      throw error
    })
    return loading
  }
  const tag = async (featureSet: string, name: string): Promise<string> => {
    const text = new TextEncoder().encode(JSON.stringify([featureSet, name]))
    const mac = new Uint8Array(await crypto.subtle.sign('HMAC', await key(), text))
    return toBase64Url(mac.subarray(0, tagBytes))
  }
  return {
    /** Creates a new signed id. */
    issue: async (featureSet: string): Promise<string> => {
      const name = toBase64Url(crypto.getRandomValues(new Uint8Array(12)))
      return `chk_${name}.${await tag(featureSet, name)}`
    },
    /** Whether this server has issued the id for this set. */
    issued: async (featureSet: string, checkpoint: string): Promise<boolean> => {
      const [, name, given] = /^chk_([\w-]{16})\.([\w-]{16})$/.exec(checkpoint) ?? []
      return name !== undefined && given === (await tag(featureSet, name))
    },
  }
}

/** The key is kept in the store, so that all processes and later ones accept each other's ids. */
async function load(open: () => Promise<Store>): Promise<CryptoKey> {
  const store = await open()
  const fresh = toBase64Url(crypto.getRandomValues(new Uint8Array(32)))
  // `ifAbsent`: if another process is faster, its key is used.
  await store.commit([put(keyName, fresh, { ifAbsent: true })])
  const bytes = fromBase64Url((await store.get(keyName))?.value ?? fresh)
  if (bytes === undefined) throw new Error('The signing key of checkpoints in the store is not valid base64url')
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
}
