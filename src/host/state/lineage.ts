/**
 * The checkpoints of one server and feature set: their ids, parents and the current one. The states themselves are in the version tree of
 * core/state. Read once, then kept in memory and written through.
 */

import { isRecord } from '../../jsonrpc/message.ts'
import { entriesUnder, type Op, put, remove, type Store } from '../../stores/store.ts'

/** A checkpoint and its parent. */
export interface StateCheckpoint {
  /** Its number within the lineage. */
  readonly n: number
  /** The server's id. A server may reuse an id; the later checkpoint has it then. */
  readonly id: string
  /** The parent's id; null for a root. */
  readonly parent: string | null
  /** The parent's number; 0: none, or unknown. */
  readonly up: number
  /** The version with its state; absent where the server keeps it, or there is none. */
  readonly version?: number
  /** `orphan`: the parent is unknown. `broken`: the state could not be computed. */
  readonly mark?: 'orphan' | 'broken'
  /** The patch of an orphan, until its parent arrives. */
  readonly pending?: readonly unknown[]
  readonly at: number
}

interface Head {
  readonly server: string
  readonly featureSet: string
  readonly current: number
  readonly last: number
}

const heads = 'lineage/'

/** The states of one feature set as a tree. */
export class Lineage {
  readonly space: string
  readonly #store: Store
  readonly #nodes = new Map<number, StateCheckpoint>()
  readonly #byId = new Map<string, number>()
  /** Orphans by the missing parent's id. */
  readonly #orphans = new Map<string, Set<number>>()
  #head: Head
  /** The version of the head's record. */
  #entry: number | undefined = undefined
  /** Numbers calls; not stored, because no call outlives the process. */
  order = 0
  /** The number of the call that set the head. */
  headOrder = 0
  /** Call numbers of orphans, which may still become the head. */
  readonly orders = new Map<number, number>()

  private constructor(store: Store, space: string, server: string, featureSet: string) {
    this.#store = store
    this.space = space
    this.#head = { server, featureSet, current: 0, last: 0 }
  }

  static async load(store: Store, space: string, server: string, featureSet: string): Promise<Lineage> {
    const lineage = new Lineage(store, space, server, featureSet)
    await lineage.reload()
    return lineage
  }

  /** The server and feature set of each lineage in a store. */
  static async list(store: Store): Promise<readonly { readonly server: string; readonly featureSet: string }[]> {
    const found: Head[] = []
    for await (const { value } of entriesUnder(store, heads)) found.push(readHead(value))
    return found.map(({ server, featureSet }) => ({ server, featureSet }))
  }

  /** Reloads where another process has written. */
  async refresh(): Promise<void> {
    if ((await this.#store.get(heads + this.space))?.version !== this.#entry) await this.reload()
  }

  /** Reads everything from the store. */
  async reload(): Promise<void> {
    this.#nodes.clear()
    this.#byId.clear()
    this.#orphans.clear()
    const entry = await this.#store.get(heads + this.space)
    this.#entry = entry?.version
    if (entry !== undefined) this.#head = { ...this.#head, ...readHead(entry.value) }
    for await (const { value } of entriesUnder(this.#store, nodesOf(this.space))) this.#keep(readNode(value))
  }

  get current(): StateCheckpoint | undefined {
    return this.#nodes.get(this.#head.current)
  }

  get nextNumber(): number {
    return this.#head.last + 1
  }

  find(id: string): StateCheckpoint | undefined {
    return this.#nodes.get(this.#byId.get(id) ?? 0)
  }

  at(n: number): StateCheckpoint | undefined {
    return this.#nodes.get(n)
  }

  all(): readonly StateCheckpoint[] {
    return [...this.#nodes.values()]
  }

  /** Orphans that wait for this parent. */
  orphansOf(id: string): readonly StateCheckpoint[] {
    return [...(this.#orphans.get(id) ?? [])].flatMap(n => this.#nodes.get(n) ?? [])
  }

  /** Operations that write a checkpoint and the head. Fail where another process has written. */
  writing(node: StateCheckpoint | undefined, current: number = this.#head.current): readonly Op[] {
    const last = Math.max(this.#head.last, node?.n ?? 0)
    const head = put(
      heads + this.space,
      JSON.stringify({ ...this.#head, current, last }),
      this.#entry === undefined ? { ifAbsent: true } : { ifVersion: this.#entry },
    )
    return node === undefined ? [head] : [head, put(nodeKey(this.space, node.n), JSON.stringify(node))]
  }

  /** Applies to memory what was committed. */
  async written(node: StateCheckpoint | undefined, current: number = this.#head.current): Promise<void> {
    this.#entry = (await this.#store.get(heads + this.space))?.version
    this.#head = { ...this.#head, current, last: Math.max(this.#head.last, node?.n ?? 0) }
    if (node !== undefined) this.#keep(node)
  }

  /** Drops the oldest checkpoints, but never the current one. */
  async prune(most: number): Promise<void> {
    if (this.#nodes.size <= most) return
    const gone = [...this.#nodes.keys()].filter(n => n !== this.#head.current).slice(0, Math.min(500, Math.ceil(most / 10)))
    await this.#store.commit(gone.map(n => remove(nodeKey(this.space, n))))
    for (const n of gone) {
      const { id = '', parent } = this.#nodes.get(n) ?? {}
      this.#nodes.delete(n)
      this.#orphans.get(parent ?? '')?.delete(n)
      if (this.#byId.get(id) === n) this.#byId.delete(id)
    }
  }

  #keep(node: StateCheckpoint): void {
    this.#nodes.set(node.n, node)
    if ((this.#byId.get(node.id) ?? 0) <= node.n) this.#byId.set(node.id, node.n)
    const missing = node.parent ?? ''
    if (node.mark !== 'orphan') this.#orphans.get(missing)?.delete(node.n)
    else this.#orphans.set(missing, (this.#orphans.get(missing) ?? new Set()).add(node.n))
  }
}

function nodesOf(space: string): string {
  return `lineage-at/${space}/`
}

function nodeKey(space: string, n: number): string {
  return `${nodesOf(space)}${String(n).padStart(12, '0')}`
}

function readNode(text: string): StateCheckpoint {
  const value: unknown = JSON.parse(text)
  if (isRecord(value) && typeof value.n === 'number' && typeof value.id === 'string') return value as unknown as StateCheckpoint
  throw new Error('A stored checkpoint is not valid. Another program may have written it')
}

function readHead(text: string): Head {
  const value: unknown = JSON.parse(text)
  if (isRecord(value) && typeof value.current === 'number' && typeof value.last === 'number') return value as unknown as Head
  throw new Error('The stored head of a lineage is not valid. Another program may have written it')
}
