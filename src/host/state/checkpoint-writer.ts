/** Adds reported checkpoints to a lineage and moves its head. Each method is one change, made while nobody else changes the lineage. */
import type { Clock } from '../../core/clock.ts'
import { canonicalJson } from '../../core/digest.ts'
import { Problem, problem } from '../../core/problem.ts'
import { patched } from '../../core/state/patch.ts'
import { StateTree } from '../../core/state/tree.ts'
import { quoted, type Why, why } from '../../core/suggestion.ts'
import type { StateReport } from '../../features/live/checkpoints/messages.ts'
import type { Op, Store } from '../../stores/store.ts'
import type { Lineage, StateCheckpoint } from './lineage.ts'

/** The result of recording a checkpoint. */
export interface Recorded {
  /** The id of the checkpoint. */
  readonly checkpoint: string
  /** The previous head; absent where there was none. */
  readonly before?: string
  /** Whether it is the head now. */
  readonly current: boolean
  /** Why the host has no state for it: the parent is unknown (`orphan`), or the patch does not apply (`broken`). */
  readonly mark?: 'orphan' | 'broken'
  /** Irregularities. */
  readonly whys: readonly Why[]
}

/** A report with a known parent; null is a root. */
type PlacedReport = StateReport & { readonly parent: string | null }

interface GrowthParts {
  readonly store: Store
  readonly clock: Clock
  readonly contents: CachedStateVersions
  /** Checkpoints per lineage. */
  readonly most: number
}

/** A checkpoint to be placed. */
interface Placing {
  readonly node: StateCheckpoint
  readonly content: Content
  readonly holder: StateHolder
  readonly order: number
  readonly whys: readonly Why[]
}

/** Adds the states that servers report. */
export class CheckpointWriter {
  readonly #parts: GrowthParts

  constructor(parts: GrowthParts) {
    this.#parts = parts
  }

  /** Records a report: a repeat only moves the head, otherwise a checkpoint is placed. */
  async record(lineage: Lineage, holder: StateHolder, report: PlacedReport, order: number): Promise<Recorded> {
    const { checkpoint: id, parent: name } = report
    const parent = name === null ? undefined : lineage.find(name)
    const known = lineage.find(id)
    if (known !== undefined && (await this.#isRepeat(lineage, known, report, parent))) {
      await this.move(lineage, known, known.id, order)
      return { checkpoint: id, current: lineage.current?.n === known.n, whys: [] }
    }
    const whys: Why[] = []
    const content = contentOf(report, parent, holder)
    // A checkpoint whose state the server keeps needs no known parent.
    const orphan = name !== null && parent === undefined && (holder === 'host' || content.kind !== 'none')
    if (orphan) whys.push(orphaned(id, name))
    // A marked checkpoint may be reported again with better data.
    const again = known?.mark === undefined ? undefined : known
    if (known !== undefined && again === undefined) whys.push(reused(id))
    const odd = await this.#mismatch(lineage, report, parent)
    if (odd !== undefined) whys.push(odd)
    const { clock } = this.#parts
    const bare = { n: again?.n ?? lineage.nextNumber, id, parent: name, up: parent?.n ?? 0, at: clock.now() }
    const node: StateCheckpoint = orphan ? orphanOf(bare, content, report.patch) : bare
    return this.#place(lineage, { node, content, holder, order, whys })
  }

  /**
   * Makes a checkpoint the head, unless a later call has decided that, and returns the head's id. A new id from the server becomes a
   * checkpoint of its own with the same state. `upto`: results of calls sent until then no longer move the head.
   */
  async move(lineage: Lineage, target: StateCheckpoint, named: string, order: number, upto = order): Promise<string> {
    if (order < lineage.headOrder) return lineage.current?.id ?? target.id
    const { mark: _, ...like } = target
    const made: StateCheckpoint | undefined =
      named === target.id
        ? undefined
        : { ...like, n: lineage.nextNumber, id: named, parent: target.id, up: target.n, at: this.#parts.clock.now() }
    const { n, id, version } = made ?? target
    const ops = lineage.writing(made, n)
    // The version tree moves too, so that it keeps this version.
    if (version !== undefined) await this.#parts.contents.move(lineage.space, version, ops)
    else await this.#commit(ops)
    await lineage.written(made, n)
    lineage.headOrder = upto
    return id
  }

  /** Removes the head, as before the first checkpoint; nothing is deleted. */
  async clear(lineage: Lineage, order: number, upto: number): Promise<void> {
    if (order < lineage.headOrder) return
    await this.#commit(lineage.writing(undefined, 0))
    await lineage.written(undefined, 0)
    lineage.headOrder = upto
  }

  /** Writes a checkpoint, updates the head, and adopts orphans that waited for it. */
  async #place(lineage: Lineage, placing: Placing): Promise<Recorded> {
    const { content, holder, order } = placing
    const leads = order >= lineage.headOrder && content.kind !== 'broken' && !(holder === 'host' && content.kind === 'none')
    const current = leads ? placing.node.n : undefined
    const written = await this.#write(lineage, placing, current)
    if ('code' in written) return this.#place(lineage, { ...placing, content: { kind: 'broken', why: written } })
    await lineage.written(written, current)
    if (leads) lineage.headOrder = order
    else if (written.mark === 'orphan') lineage.orders.set(written.n, order)
    else if (written.version !== undefined) await this.#hold(lineage)
    await lineage.prune(this.#parts.most)
    await this.#adopt(lineage, written, holder)
    const whys = content.kind === 'broken' ? [...placing.whys, content.why] : placing.whys
    const shown = { checkpoint: written.id, current: lineage.current?.n === written.n, whys }
    return written.mark === undefined ? shown : { ...shown, mark: written.mark }
  }

  /** The written checkpoint, or why its state cannot be computed. */
  async #write(lineage: Lineage, { node, content }: Placing, current: number | undefined): Promise<StateCheckpoint | Why> {
    const { contents } = this.#parts
    if (content.kind === 'data' || content.kind === 'patch') {
      const on = lineage.at(node.up)?.version ?? 0
      const also = (version: number) => lineage.writing({ ...node, version }, current)
      const version = await contents.write(lineage.space, content, on, also)
      return typeof version === 'number' ? { ...node, version } : version
    }
    const broken = content.kind === 'broken' && node.mark === undefined
    const made: StateCheckpoint = {
      ...node,
      ...(content.kind === 'same' && { version: content.version }),
      ...(broken && { mark: 'broken' }),
    }
    await this.#commit(lineage.writing(made, current))
    return made
  }

  /** Attaches orphans whose parent has arrived, and applies their patches. */
  async #adopt(lineage: Lineage, parent: StateCheckpoint, holder: StateHolder): Promise<void> {
    for (const orphan of lineage.orphansOf(parent.id)) {
      if (orphan.n === parent.n || parent.mark !== undefined) continue
      const { mark: _, pending, ...node } = { ...orphan, up: parent.n }
      const order = lineage.orders.get(orphan.n) ?? -1
      lineage.orders.delete(orphan.n)
      const own: Content = orphan.version === undefined ? { kind: 'none' } : { kind: 'same', version: orphan.version }
      const report = { checkpoint: node.id, parent: parent.id }
      const content = pending === undefined ? own : contentOf({ ...report, patch: pending }, parent, holder)
      await this.#place(lineage, { node, content, holder, order, whys: [] })
    }
  }

  /** Whether a report repeats a known checkpoint. */
  async #isRepeat(lineage: Lineage, known: StateCheckpoint, report: PlacedReport, parent?: StateCheckpoint): Promise<boolean> {
    if (known.mark !== undefined || known.parent !== report.parent || known.up !== (parent?.n ?? 0)) return false
    if (report.data === undefined) return true
    if (known.version === undefined) return false
    const stored = await this.#parts.contents.read(lineage.space, known.version)
    return stored !== undefined && canonicalJson(stored.value) === canonicalJson(report.data)
  }

  async #mismatch(lineage: Lineage, report: PlacedReport, parent: StateCheckpoint | undefined): Promise<Why | undefined> {
    if (report.data === undefined || report.patch === undefined || parent?.version === undefined) return undefined
    const base = await this.#parts.contents.read(lineage.space, parent.version)
    return base === undefined ? undefined : mismatch(report, base.value)
  }

  /** Makes the head current in the version tree, which would otherwise keep what was written last. */
  async #hold(lineage: Lineage): Promise<void> {
    const version = lineage.current?.version
    if (version !== undefined) await this.#parts.contents.move(lineage.space, version, [])
  }

  async #commit(ops: ReturnType<Lineage['writing']>): Promise<void> {
    const outcome = await this.#parts.store.commit(ops)
    if (!outcome.ok) throw problem('STATE_CONFLICT', 'Another process changed the same state at the same time')
  }
}

/** Why a checkpoint is marked as an orphan: its parent is not known. */
function orphaned(checkpoint: string, parent: string): Why {
  const message = `The checkpoint ${quoted(checkpoint)} is based on ${quoted(parent)}, which is not stored`
  return why('CHECKPOINT_ORPHAN', 'state.parent', message, 'Correct the server so that it reports the whole state as data')
}

/** Why a checkpoint is odd: its name stood for another one before. */
function reused(checkpoint: string): Why {
  const message = `The checkpoint name ${quoted(checkpoint)} was used again. It now refers to the later checkpoint`
  return why('CHECKPOINT_REUSED', 'state.checkpoint', message, 'Correct the server so that each checkpoint has its own name')
}

function orphanOf(bare: StateCheckpoint, content: Content, patch: readonly unknown[] | undefined): StateCheckpoint {
  const waits = content.kind === 'broken' && patch !== undefined
  return { ...bare, mark: 'orphan', ...(waits && { pending: patch }) }
}

// The content of a checkpoint: whole state, patch on its parent, the parent's state, or none.

/** Who keeps the state: the host, the server, or whoever a report shows. */
export type StateHolder = 'host' | 'server' | 'either'

/** What a report contains. */
type Content =
  | { readonly kind: 'data'; readonly data: unknown }
  | { readonly kind: 'patch'; readonly patch: readonly unknown[] }
  | { readonly kind: 'same'; readonly version: number }
  | { readonly kind: 'none' }
  | { readonly kind: 'broken'; readonly why: Why }

function contentOf(report: StateReport, parent: StateCheckpoint | undefined, holder: StateHolder): Content {
  if (holder === 'server') return { kind: 'none' }
  if (report.data !== undefined) return { kind: 'data', data: report.data }
  if (report.patch === undefined)
    return holder === 'host' && parent?.version !== undefined ? { kind: 'same', version: parent.version } : { kind: 'none' }
  if (parent?.version !== undefined) return { kind: 'patch', patch: report.patch }
  return { kind: 'broken', why: baseless(report) }
}

function baseless({ checkpoint, parent }: StateReport): Why {
  const on = typeof parent === 'string' ? `of ${quoted(parent)}` : 'before it'
  const message = `The checkpoint ${quoted(checkpoint)} is a patch, but the state ${on} is not stored`
  return why('PATCH_WITHOUT_BASE', 'state.patch', message, 'Correct the server so that it reports the whole state as data')
}

/** Cached states: the heads of sets in use. */
const ready = 16

/** The version tree with a cache. Cached states are shared and must not be changed. */
export class CachedStateVersions {
  readonly #tree: StateTree
  readonly #ready = new Map<string, unknown>()

  constructor(store: Store, clock: Clock, versions: number) {
    this.#tree = new StateTree({ store, clock, versions })
  }

  /** A state; undefined where it is no longer stored. */
  async read(space: string, version: number): Promise<{ readonly value: unknown } | undefined> {
    const key = `${space}#${version}`
    if (this.#ready.has(key)) return { value: this.#use(key, this.#ready.get(key)) }
    const read = await this.#tree.read(space, version)
    return read === undefined ? undefined : { value: this.#use(key, read.value) }
  }

  /** Whether a state is stored, without reading it. */
  has(space: string, version: number): Promise<boolean> {
    return this.#tree.has(space, version)
  }

  /** Writes a state on top of another version. Returns its version, or why it is invalid. */
  async write(
    space: string,
    content: Content & { readonly kind: 'data' | 'patch' },
    parent: number,
    also: (version: number) => readonly Op[],
  ): Promise<number | Why> {
    const change =
      content.kind === 'data'
        ? ({ kind: 'data', body: content.data } as const)
        : ({ kind: 'patch', body: content.patch } as const)
    try {
      const made = await this.#tree.append(space, change, { parent, branch: true, also })
      this.#use(`${space}#${made.version.id}`, made.value)
      return made.version.id
    } catch (error) {
      // A conflict with another process is not the patch's fault.
      if (!(error instanceof Problem) || (error.code === 'STATE_CONFLICT' && error.retryable)) throw error
      return why(error.code, 'state.patch', error.message, 'Correct the server so that it reports the whole state as data')
    }
  }

  /** Makes another version current, without reading it. */
  move(space: string, version: number, also: readonly Op[]): Promise<void> {
    return this.#tree.rollback(space, version, also)
  }

  #use(key: string, value: unknown): unknown {
    this.#ready.delete(key)
    this.#ready.set(key, value)
    for (const oldest of this.#ready.keys()) {
      if (this.#ready.size <= ready) break
      this.#ready.delete(oldest)
    }
    return value
  }
}

/** Why a patch does not lead to the data beside it; undefined where it does, or cannot be checked. */
function mismatch(report: StateReport, base: unknown): Why | undefined {
  try {
    if (canonicalJson(patched(base, report.patch ?? [])) === canonicalJson(report.data)) return undefined
  } catch (error) {
    if (!(error instanceof Problem)) throw error
  }
  const message = `The patch of ${quoted(report.checkpoint)} does not produce the data that was sent with it`
  return why('STATE_MISMATCH', 'state.data', message, 'The data was used. Correct the server so that it sends only one of them')
}
