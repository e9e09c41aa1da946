/** What a reported checkpoint holds: its state whole, as a patch on its parent's, the parent's unchanged, or nothing at all. */
import type { Clock } from '../../core/clock.ts'
import { canonicalJson } from '../../core/digest.ts'
import { Problem } from '../../core/problem.ts'
import { patched } from '../../core/state/patch.ts'
import { StateTree } from '../../core/state/tree.ts'
import { quoted, type Why, why } from '../../core/why.ts'
import type { StateReport } from '../../features/live/checkpoints/messages.ts'
import type { Op, Store } from '../../stores/store.ts'
import type { StateCheckpoint } from './lineage.ts'

/** Who keeps the state: the host, the server, or whoever a report says. */
export type StateKeeper = 'host' | 'server' | 'either'

/** What can be made of a report. */
export type Content =
  | { readonly kind: 'data'; readonly data: unknown }
  | { readonly kind: 'patch'; readonly patch: readonly unknown[] }
  | { readonly kind: 'same'; readonly version: number }
  | { readonly kind: 'none' }
  | { readonly kind: 'broken'; readonly why: Why }

export function contentOf(report: StateReport, parent: StateCheckpoint | undefined, keeper: StateKeeper): Content {
  if (keeper === 'server') return { kind: 'none' }
  if (report.data !== undefined) return { kind: 'data', data: report.data }
  if (report.patch === undefined)
    return keeper === 'host' && parent?.version !== undefined ? { kind: 'same', version: parent.version } : { kind: 'none' }
  if (parent?.version !== undefined) return { kind: 'patch', patch: report.patch }
  return { kind: 'broken', why: baseless(report) }
}

function baseless({ checkpoint, parent }: StateReport): Why {
  const on = typeof parent === 'string' ? `of ${quoted(parent)}` : 'before it'
  return why(
    'PATCH_WITHOUT_BASE',
    'state.patch',
    `The checkpoint ${quoted(checkpoint)} is a patch, and the state ${on} is not known`,
    'Have the server report the whole state as data',
  )
}

/** States kept ready, at most: the heads of the sets that are used. */
const ready = 16

/** The version tree, with the states that were last used at hand. They are shared: nobody changes them. */
export class Contents {
  readonly #tree: StateTree
  readonly #ready = new Map<string, unknown>()

  constructor(store: Store, clock: Clock, versions: number) {
    this.#tree = new StateTree({ store, clock, versions })
  }

  /** Undefined where it is no longer kept. */
  async read(space: string, version: number): Promise<{ readonly value: unknown } | undefined> {
    const key = `${space}#${version}`
    if (this.#ready.has(key)) return { value: this.#use(key, this.#ready.get(key)) }
    const read = await this.#tree.read(space, version)
    return read === undefined ? undefined : { value: this.#use(key, read.value) }
  }

  /** Without reading it: some are large. */
  has(space: string, version: number): Promise<boolean> {
    return this.#tree.has(space, version)
  }

  /** Writes a state on that of another version. Gives its own version, or why it cannot be. */
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
      // Another process was quicker: that is no fault of the patch.
      if (!(error instanceof Problem) || (error.code === 'STATE_CONFLICT' && error.retryable)) throw error
      return why(error.code, 'state.patch', error.message, 'Have the server report the whole state as data')
    }
  }

  /** Makes another version current; nothing of it is read. */
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

/** Whether a patch leads where the data beside it says. Undefined: it does, or nobody can tell. */
export function mismatch(report: StateReport, base: unknown): Why | undefined {
  try {
    if (canonicalJson(patched(base, report.patch ?? [])) === canonicalJson(report.data)) return undefined
  } catch (error) {
    if (!(error instanceof Problem)) throw error
  }
  return why(
    'STATE_MISMATCH',
    'state.data',
    `The patch of ${quoted(report.checkpoint)} does not lead to the data beside it`,
    'Have the server send one of them; the data was taken',
  )
}
