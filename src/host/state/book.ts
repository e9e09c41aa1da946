/**
 * State of feature sets (MCP Live 0.2 §8): a tree of checkpoints with a head, for each server and feature set. Calls carry the head,
 * results add checkpoints, and a rollback moves the head once the server agrees. Reports that cannot be placed are kept and marked.
 */
import type { Clock } from '../../core/clock.ts'
import { digestText } from '../../core/digest.ts'
import { Problem, problem } from '../../core/problem.ts'
import { difference, type PatchStep } from '../../core/state/patch.ts'
import type { Why } from '../../core/suggestion.ts'
import type { StateReport } from '../../features/live/checkpoints/messages.ts'
import { classify } from '../../features/reliability/problem/classify.ts'
import type { Store } from '../../stores/store.ts'
import type { HostServer } from '../servers/server.ts'
import { KeyedQueue } from '../waiting.ts'
import { CachedStateVersions, CheckpointWriter, type Recorded, type StateHolder } from './checkpoint-writer.ts'
import { Lineage, type StateCheckpoint } from './lineage.ts'
import {
  failedRollback,
  noEarlierState,
  notOffered,
  rollbackRefused,
  unknownCheckpoint,
  unnamedCheckpoint,
} from './rollback-reasons.ts'

/** What a call carries; pass it to `record` with the result. */
export interface Sent {
  /** The state at the head, where the host keeps it. */
  readonly state?: unknown
  /** The id of the head, where the server keeps the state. */
  readonly checkpoint?: string
  /** The checkpoint that was the head when the call was sent. */
  readonly head?: string
  /** The order of sending. */
  readonly order: number
}

/** The part that `record` needs. Without an order it counts as sent last. */
type SentBefore = {
  /** The checkpoint that was the head when the call was sent. */
  readonly head?: string | undefined
  /** The order of sending. */
  readonly order?: number | undefined
}

/** The result of a rollback. */
export interface RolledBack {
  /** Whether it was rolled back. */
  readonly success: boolean
  /** The head afterwards. */
  readonly head?: string
  /** The server does not support the request; it gets the earlier state with the next call. */
  readonly hostOnly?: boolean
  /** Why it was not. */
  readonly why?: Why
}

/** What the book needs to know about servers. */
interface StateBookPort {
  /** Who keeps the state of a set. */
  holder(server: string, featureSet: string): StateHolder
  /** Whether a set declares rollback. */
  rollsBack(server: string, featureSet: string): boolean
  /** Asks the server to roll back. */
  ask(server: string, featureSet: string, checkpoint: string, signal: AbortSignal | undefined): Promise<RollbackAnswer>
}

/** A server's answer to a rollback. */
export interface RollbackAnswer {
  readonly success: boolean
  /** The server's checkpoint now: the target, or a new one that equals it. */
  readonly checkpoint: string
  readonly reason?: string
  /** The server does not know the method. */
  readonly unsupported?: boolean
}

/** A checkpoint in a tree. */
export interface TreeNode {
  /** The id of the checkpoint. */
  readonly checkpoint: string
  /** The checkpoint before it. Null: it is the first one. */
  readonly parent: string | null
  /** Milliseconds since the epoch. */
  readonly at: number
  /** `stored`: the host has its state. `server`: the server has it. */
  readonly state: 'kept' | 'server' | 'orphan' | 'broken'
  /** Whether it is the head. */
  readonly current: boolean
}

/** What the book of states needs of its host. */
export interface StateBookOptions {
  readonly store: Store
  readonly clock: Clock
  readonly port: StateBookPort
  /** Called when a set has a new checkpoint, or another one became its head. */
  readonly changed?: ((server: string, featureSet: string) => void) | undefined
  /** Called for irregular reports. */
  readonly odd?: ((server: string, featureSet: string, why: Why) => void) | undefined
  /** Called after each rollback, successful or not. */
  readonly rolled?: ((server: string, featureSet: string, checkpoint: string, outcome: RolledBack) => void) | undefined
  /** Checkpoints per set; the oldest are dropped. Default and maximum 8,000. */
  readonly checkpoints?: number
}

/** The longest checkpoint id. */
const longestId = 512
/** Attempts after conflicts with other processes. */
const tries = 5
/** A tenth of this is dropped at once and must fit into one commit. */
const mostCheckpoints = 8_000

/** The states of all servers. */
export class StateBook {
  readonly #options: StateBookOptions
  readonly #contents: CachedStateVersions
  readonly #growth: CheckpointWriter
  /** Loaded lineages. */
  readonly #lineages = new Map<string, Promise<Lineage>>()
  /** One change at a time per lineage. */
  readonly #queue = new KeyedQueue()

  constructor(options: StateBookOptions) {
    this.#options = options
    const { store, clock, checkpoints: most = mostCheckpoints } = options
    this.#contents = new CachedStateVersions(store, clock, Math.min(most, mostCheckpoints))
    this.#growth = new CheckpointWriter({ store, clock, contents: this.#contents, most: Math.min(most, mostCheckpoints) })
  }

  /** What a call of this set carries now. */
  async before(server: string, featureSet: string): Promise<Sent> {
    const lineage = await this.#fresh(server, featureSet)
    const order = ++lineage.order
    const head = lineage.current
    if (head === undefined) return { order }
    if (this.#isServers(server, featureSet, head)) return { checkpoint: head.id, head: head.id, order }
    const stored = await this.#stored(lineage, head)
    return stored === undefined ? { head: head.id, order } : { state: stored.value, head: head.id, order }
  }

  /**
   * Records the state that a result reported. `sent`: what `before` returned for the call; of several calls in flight, the one sent last
   * determines the head. Without it the report has no predecessor.
   */
  async record(server: string, featureSet: string, report: StateReport, sent?: SentBefore | string): Promise<Recorded> {
    const recorded = await this.#inTurn(server, featureSet, async lineage => {
      if (report.checkpoint === '' || report.checkpoint.length > longestId)
        return { checkpoint: report.checkpoint, current: false, whys: [unnamedCheckpoint()] }
      const before = lineage.current?.id
      const order = (typeof sent === 'object' ? sent.order : undefined) ?? ++lineage.order
      const parent = report.parent === undefined ? ((typeof sent === 'object' ? sent.head : sent) ?? null) : report.parent
      const holder = this.#options.port.holder(server, featureSet)
      const placed = await this.#growth.record(lineage, holder, { ...report, parent }, order)
      return before === undefined ? placed : { ...placed, before }
    })
    this.#options.changed?.(server, featureSet)
    for (const why of recorded.whys) this.#options.odd?.(server, featureSet, why)
    return recorded
  }

  /**
   * Rolls back to a checkpoint, on any branch. The server is asked first, and only its consent moves the head; a server that does not know the
   * method does not prevent it where the host keeps the state. Null: before the first checkpoint, possible only where the host keeps it.
   */
  async rollback(
    server: string,
    featureSet: string,
    checkpoint: string | null,
    {
      signal,
    }: {
      /** Stops waiting for the server. */
      readonly signal?: AbortSignal
    } = {},
  ): Promise<RolledBack> {
    const going = checkpoint === null ? this.#clear(server, featureSet) : this.#rollback(server, featureSet, checkpoint, signal)
    const rolled = (outcome: RolledBack): void =>
      this.#options.rolled?.(server, featureSet, checkpoint ?? 'before the first', outcome)
    const outcome = await going.catch(error => {
      rolled({ success: false, why: failedRollback(checkpoint ?? '', classify(error)) })
      throw error
    })
    // A request that cannot even be made is not reported.
    if (outcome.why?.code !== 'NO_EARLIER_STATE') rolled(outcome)
    if (outcome.success) this.#options.changed?.(server, featureSet)
    return outcome
  }

  /** Why a rollback to a checkpoint would not even be asked of the server; undefined: it would be. Null: before the first one. */
  async rollbackRefusal(server: string, featureSet: string, checkpoint: string | null): Promise<Why | undefined> {
    const { port } = this.#options
    if (!port.rollsBack(server, featureSet)) return notOffered(featureSet)
    const lineage = await this.#fresh(server, featureSet)
    if (checkpoint === null) {
      const { current } = lineage
      return current !== undefined && this.#isServers(server, featureSet, current)
        ? noEarlierState(server, featureSet)
        : undefined
    }
    const target = lineage.find(checkpoint)
    const held = port.holder(server, featureSet) === 'host' || target?.version !== undefined
    const isGone = target === undefined || target.mark === 'broken' || (held && !(await this.#isCurrent(lineage, target)))
    return isGone ? unknownCheckpoint(checkpoint) : undefined
  }

  async #clear(server: string, featureSet: string): Promise<RolledBack> {
    const refused = await this.rollbackRefusal(server, featureSet, null)
    if (refused !== undefined) return { success: false, why: refused }
    const lineage = await this.#fresh(server, featureSet)
    if (lineage.current === undefined) return { success: true }
    const order = ++lineage.order
    await this.#inTurn(server, featureSet, fresh => this.#growth.clear(fresh, order, ++fresh.order))
    return { success: true, hostOnly: true }
  }

  async #rollback(server: string, featureSet: string, checkpoint: string, signal: AbortSignal | undefined): Promise<RolledBack> {
    const { port } = this.#options
    const refused = await this.rollbackRefusal(server, featureSet, checkpoint)
    if (refused !== undefined) return { success: false, why: refused }
    const lineage = await this.#fresh(server, featureSet)
    const target = lineage.find(checkpoint)
    if (target === undefined) return { success: false, why: unknownCheckpoint(checkpoint) }
    const held = port.holder(server, featureSet) === 'host' || target.version !== undefined
    const order = ++lineage.order
    const answer = await port.ask(server, featureSet, checkpoint, signal)
    const hostOnly = answer.unsupported === true && held
    if (!answer.success && !hostOnly) return { success: false, why: rollbackRefused(checkpoint, answer.reason) }
    const named = hostOnly || answer.checkpoint === '' ? checkpoint : answer.checkpoint
    const head = await this.#inTurn(server, featureSet, fresh =>
      // Calls that were sent before now build on the old head, so their results become branches.
      this.#growth.move(fresh, fresh.find(checkpoint) ?? target, named, order, ++fresh.order),
    )
    return { success: true, head, ...(hostOnly && { hostOnly }) }
  }

  /** Runs one job at a time on a set, for servers that cannot handle branches. */
  serially<T>(server: string, featureSet: string, work: () => Promise<T>): Promise<T> {
    return this.#queue.inLine(`serial ${keyOf(server, featureSet)}`, work)
  }

  /** The state at a checkpoint. Throws a Problem where it is not kept. */
  async at(server: string, featureSet: string, checkpoint: string): Promise<unknown> {
    const lineage = await this.#fresh(server, featureSet)
    const stored = await this.#stored(lineage, lineage.find(checkpoint))
    if (stored !== undefined) return structuredClone(stored.value)
    const { code, message, fix } = unknownCheckpoint(checkpoint)
    throw problem(code, message, { suggestion: fix })
  }

  /** What is known of a checkpoint, or of the head, for servers that ask. */
  async report(server: string, featureSet: string, checkpoint?: string): Promise<StateReport | undefined> {
    const lineage = await this.#fresh(server, featureSet)
    const node = checkpoint === undefined ? lineage.current : lineage.find(checkpoint)
    if (node === undefined) return undefined
    const stored = await this.#stored(lineage, node)
    return { checkpoint: node.id, parent: node.parent, ...(stored !== undefined && { data: stored.value }) }
  }

  /** The JSON Patch (RFC 6902) between the states of two checkpoints, on any branches. */
  async diff(server: string, featureSet: string, from: string, to: string): Promise<readonly PatchStep[]> {
    return difference(await this.at(server, featureSet, from), await this.at(server, featureSet, to))
  }

  /** All checkpoints, oldest first. */
  async tree(server: string, featureSet: string): Promise<readonly TreeNode[]> {
    const lineage = await this.#fresh(server, featureSet)
    return lineage.all().map(({ n, id, parent, at, mark, version }) => ({
      checkpoint: id,
      parent,
      at,
      state: mark ?? (version === undefined ? 'server' : 'kept'),
      current: n === lineage.current?.n,
    }))
  }

  /** The sets that have checkpoints. */
  sets(): Promise<
    readonly {
      /** The name of the server. */
      readonly server: string
      /** The name of the feature set. */
      readonly featureSet: string
    }[]
  > {
    return Lineage.list(this.#options.store)
  }

  /** Whether only the server has the state of a checkpoint. */
  #isServers(server: string, featureSet: string, { version }: StateCheckpoint): boolean {
    const holder = this.#options.port.holder(server, featureSet)
    return holder === 'server' || (holder === 'either' && version === undefined)
  }

  /** The state of a checkpoint; undefined where it is not stored. */
  async #stored(lineage: Lineage, node: StateCheckpoint | undefined): Promise<{ readonly value: unknown } | undefined> {
    return node?.version === undefined ? undefined : this.#contents.read(lineage.space, node.version)
  }

  /** Whether the state is still stored. */
  async #isCurrent(lineage: Lineage, { version }: StateCheckpoint): Promise<boolean> {
    return version !== undefined && (await this.#contents.has(lineage.space, version))
  }

  #lineage(server: string, featureSet: string): Promise<Lineage> {
    const key = keyOf(server, featureSet)
    const known = this.#lineages.get(key)
    if (known !== undefined) return known
    const loading = spaceOf(key).then(space => Lineage.load(this.#options.store, space, server, featureSet))
    this.#lineages.set(key, loading)
    loading.catch(() => this.#lineages.delete(key))
    return loading
  }

  /** The lineage, reloaded where another process has written. */
  #fresh(server: string, featureSet: string): Promise<Lineage> {
    return this.#queue.inLine(keyOf(server, featureSet), async () => {
      const lineage = await this.#lineage(server, featureSet)
      await lineage.refresh()
      return lineage
    })
  }

  /** Changes a lineage, one change at a time; retries after a conflict with another process. */
  #inTurn<T>(server: string, featureSet: string, work: (lineage: Lineage) => Promise<T>): Promise<T> {
    return this.#queue.inLine(keyOf(server, featureSet), async () => {
      const lineage = await this.#lineage(server, featureSet)
      for (let attempt = 1; ; attempt++) {
        try {
          return await work(lineage)
        } catch (error) {
          if (!(error instanceof Problem && error.code === 'STATE_CONFLICT') || attempt === tries) throw error
          await lineage.reload()
        }
      }
    })
  }
}

function keyOf(server: string, featureSet: string): string {
  return JSON.stringify([server, featureSet])
}

/** A short key without foreign characters. */
async function spaceOf(key: string): Promise<string> {
  return (await digestText(key)).slice(0, 22)
}

// What servers declare about state, remembered while they are down.

interface KnownState {
  readonly holder: StateHolder
  readonly rollback: boolean
}

/** Remembered sets. */
const remembered = 10_000

/** Answers the book's questions about servers. */
export function stateBookPort(serverOf: (name: string) => HostServer | undefined): StateBookPort {
  /** By server and set, for while it is down. */
  const last = new Map<string, KnownState>()
  const look = (server: string, featureSet: string): KnownState => {
    const key = JSON.stringify([server, featureSet])
    const live = serverOf(server)?.live
    const facts = live?.featureSets.get(featureSet)
    if (live === undefined || facts === undefined) return last.get(key) ?? { holder: 'either', rollback: false }
    // From 0.4 on the keeper is not declared; data or a patch in a result shows it.
    const silent = live.dialect.label === '0.4' || live.dialect.label === '0.5'
    const holder = facts.hostState === true ? 'host' : silent ? 'either' : 'server'
    const known: KnownState = { holder, rollback: facts.rollback === true }
    if (last.size >= remembered && !last.has(key)) last.delete(last.keys().next().value ?? '')
    last.set(key, known)
    return known
  }
  return {
    holder: (server, featureSet) => look(server, featureSet).holder,
    rollsBack: (server, featureSet) => look(server, featureSet).rollback,
    ask: async (server, featureSet, checkpoint, signal) => {
      const live = serverOf(server)?.live
      if (live === undefined) return { success: false, checkpoint, reason: 'the server is not connected' }
      return live.rollback(featureSet, checkpoint, signal === undefined ? {} : { signal })
    },
  }
}
