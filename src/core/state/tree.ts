/**
 * State as a tree of versions. Writing adds a version on its parent and moves the head; rolling back moves the head alone, and
 * what is written then begins a branch. A version never changes, so an id stands for one state for ever.
 */
import { isRecord } from '../../jsonrpc/message.ts'
import { type Op, put, remove, type Store, storeLimits } from '../../stores/store.ts'
import type { Clock } from '../clock.ts'
import { problem } from '../problem.ts'
import { difference, type PatchStep, patchedInPlace } from './patch.ts'

type Change =
  | { readonly kind: 'data' | 'opaque'; readonly body: unknown }
  | { readonly kind: 'patch'; readonly body: readonly unknown[] }

interface WriteOptions {
  /** The version it builds on. Default: the head, whichever that is. */
  readonly parent?: number
  /** Begin a branch where the parent is no longer the head; without it that is a conflict. */
  readonly branch?: boolean
  /** Written in the same commit; it may name the new version. */
  readonly also?: readonly Op[] | ((id: number) => readonly Op[])
}

interface StateTreeOptions {
  readonly store: Store
  readonly clock: Clock
  /** Versions of one space. Default 1,000. */
  readonly versions?: number
}

/** A version, and the state that it stands for. */
interface ReadVersion {
  readonly version: Version
  readonly value: unknown
}

/** More patches than this in a row, and the next version is kept whole: reading one stays cheap. */
const MOST_PATCHES = 16
const TRIES = 20

/** The versions of states on a store, each space with a current one that can be moved back. */
export class StateTree {
  readonly #store: Store
  readonly #clock: Clock
  readonly #versions: number

  constructor(options: StateTreeOptions) {
    this.#store = options.store
    this.#clock = options.clock
    this.#versions = options.versions ?? 1_000
  }

  /** The current version; 0 where there is none. */
  async head(space: string): Promise<number> {
    return (await this.#head(space)).head.current
  }

  /** Gives the id of the new version. */
  async write(space: string, change: Change, options: WriteOptions = {}): Promise<number> {
    return (await this.append(space, change, options)).version.id
  }

  /** Gives the new version, and the state that it stands for. */
  async append(space: string, change: Change, options: WriteOptions = {}): Promise<ReadVersion> {
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const { head, version } = await this.#head(space)
      const parent = options.parent ?? head.current
      if (parent !== head.current && options.branch !== true) throw conflict(parent, head)
      const { version: made, value } = await this.#make(space, change, parent, head.last + 1)
      const after: Head = { ...head, current: made.id, last: made.id }
      const cut =
        made.id - after.first >= this.#versions ? await this.#cut(space, after, parent) : { first: after.first, ops: [] }
      const outcome = await this.#store.commit([
        put(
          headKey(space),
          JSON.stringify({ ...after, first: cut.first }),
          version === undefined ? { ifAbsent: true } : { ifVersion: version },
        ),
        put(versionKey(space, made.id), JSON.stringify(made), { ifAbsent: true }),
        ...cut.ops,
        ...(typeof options.also === 'function' ? options.also(made.id) : (options.also ?? [])),
      ])
      if (outcome.ok) return { version: made, value }
      if (outcome.index > 1 + cut.ops.length)
        throw problem('STATE_CONFLICT', 'The owner of the state was changed by another request', {
          suggestion: 'Repeat the request',
        })
      if (options.parent !== undefined && options.branch !== true) throw conflict(parent, (await this.#head(space)).head)
    }
    throw problem('STATE_CONFLICT', 'Other requests keep writing this state', { retryAfter: 100 })
  }

  /** The state at a version. Undefined where there is none, or none any more. */
  async read(space: string, id: number): Promise<ReadVersion | undefined> {
    const version = await this.#version(space, id)
    if (version === undefined) return undefined
    const value = await this.#whole(space, version)
    return value === undefined ? undefined : { version, value: value.value }
  }

  /** Makes an earlier version, or one of another branch, the current one. */
  async rollback(space: string, to: number, also: readonly Op[] = []): Promise<void> {
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const { head, version } = await this.#head(space)
      if (!isWithin(head, to)) throw unknown(to)
      const write = put(headKey(space), JSON.stringify({ ...head, current: to }), { ifVersion: version ?? 0 })
      if ((await this.#store.commit([write, ...also])).ok) return
    }
    throw problem('STATE_CONFLICT', 'Other requests keep writing this state', { retryAfter: 100 })
  }

  /** Whether there is such a version, without reading it. */
  async has(space: string, id: number): Promise<boolean> {
    return isWithin((await this.#head(space)).head, id)
  }

  /** From a version down to the first that is remembered, newest first. */
  async ancestors(space: string, id: number): Promise<readonly Version[]> {
    const found: Version[] = []
    for (let at = await this.#version(space, id); at !== undefined; at = await this.#version(space, at.parent)) found.push(at)
    return found
  }

  /** The steps that lead from one version to another. */
  async difference(space: string, from: number, to: number): Promise<readonly PatchStep[]> {
    const [before, after] = await Promise.all([this.read(space, from), this.read(space, to)])
    if (before === undefined) throw unknown(from)
    if (after === undefined) throw unknown(to)
    return difference(before.value, after.value)
  }

  async #head(space: string): Promise<{ readonly head: Head; readonly version: number | undefined }> {
    const entry = await this.#store.get(headKey(space))
    return entry === undefined ? { head: noHead, version: undefined } : { head: readHead(entry.value), version: entry.version }
  }

  async #version(space: string, id: number): Promise<Version | undefined> {
    if (!(Number.isSafeInteger(id) && id > 0)) return undefined
    const entry = await this.#store.get(versionKey(space, id))
    return entry === undefined ? undefined : readVersion(entry.value)
  }

  async #make(space: string, change: Change, parent: number, id: number): Promise<ReadVersion> {
    const at = this.#clock.now()
    const made = (version: Version, value: unknown): ReadVersion => ({ version: fitting(version), value })
    if (change.kind !== 'patch') return made({ id, parent, kind: change.kind, body: change.body, at, patches: 0 }, change.body)
    const below = await this.#version(space, parent)
    if (below?.kind === 'opaque') throw problem('STATE_INVALID', 'An opaque state cannot be patched: write the whole state')
    // Applied now, so that a patch that cannot be applied is refused now.
    const whole = below === undefined ? undefined : await this.#whole(space, below, [change.body])
    if (below === undefined || whole === undefined) throw unknown(parent)
    const { value } = whole
    const patches = below.patches + 1
    if (patches > MOST_PATCHES) return made({ id, parent, kind: 'data', body: value, at, patches: 0 }, value)
    return made({ id, parent, kind: 'patch', body: change.body, at, patches }, value)
  }

  /** The state at a version, with patches on top of it that are not written yet. */
  async #whole(
    space: string,
    version: Version,
    more: readonly (readonly unknown[])[] = [],
  ): Promise<{ readonly value: unknown } | undefined> {
    const patches: (readonly unknown[])[] = []
    let below: Version | undefined = version
    while (below?.kind === 'patch') {
      patches.push(below.body as readonly unknown[])
      below = await this.#version(space, below.parent)
    }
    if (below === undefined) return undefined
    const all = [...patches.reverse(), ...more]
    return { value: all.length === 0 ? below.body : patchedInPlace(below.body, all) }
  }

  /** Forgets the oldest tenth. Patches that rest on what goes are kept whole instead. */
  async #cut(space: string, head: Head, needed: number): Promise<{ readonly first: number; readonly ops: readonly Op[] }> {
    const first = Math.min(head.first + Math.ceil(this.#versions / 10), head.current, needed || head.current)
    const ops: Op[] = []
    for (let id = head.first; id < first; id++) ops.push(remove(versionKey(space, id)))
    for (let after: string | undefined = versionKey(space, first - 1); ; ) {
      const page = await this.#store.scan(versionsPrefix(space), { after })
      for (const entry of page) {
        const version = readVersion(entry.value)
        if (version.kind !== 'patch' || version.parent >= first) continue
        const whole = await this.#whole(space, version)
        if (whole !== undefined)
          ops.push(put(entry.key, JSON.stringify({ ...version, kind: 'data', body: whole.value, patches: 0 })))
      }
      after = page.at(-1)?.key
      if (after === undefined) return { first, ops }
    }
  }
}

/** A version is one value of the store. */
function fitting(version: Version): Version {
  const length = JSON.stringify(version).length
  if (length * 3 <= storeLimits.valueBytes || new TextEncoder().encode(JSON.stringify(version)).length <= storeLimits.valueBytes)
    return version
  throw problem('PAYLOAD_TOO_LARGE', `The state is larger than ${storeLimits.valueBytes} bytes (the limit)`, {
    suggestion: 'Store large content elsewhere, and its address in the state',
  })
}

/** Versions are made and forgotten in order: what lies between is there, and need not be read, however large it is. */
function isWithin({ first, last }: Head, id: number): boolean {
  return Number.isSafeInteger(id) && id >= first && id <= last
}

function conflict(parent: number, head: Head): Error {
  return problem('STATE_CONFLICT', `The state is at version ${head.current}, not ${parent}: another call has changed it`, {
    suggestion: 'Read it again and repeat the change',
  })
}

function unknown(id: number): Error {
  return problem('STATE_INVALID', `Version ${id} of the state does not exist, or is no longer kept`, {
    suggestion: 'Use the current version',
  })
}

/** One version of a state: whole, opaque to us, or a patch on its parent. */
interface Version {
  /** Counts up within its space and is never given twice. */
  readonly id: number
  /** 0: none, the first of its space. */
  readonly parent: number
  readonly kind: 'data' | 'opaque' | 'patch'
  readonly body: unknown
  readonly at: number
  /** How many patches lie between this one and the whole state below it. */
  readonly patches: number
}

/** The current version of a space, and how many there have been. */
interface Head {
  readonly current: number
  readonly last: number
  /** Versions before this one are forgotten. */
  readonly first: number
}

const noHead: Head = { current: 0, last: 0, first: 1 }

function headKey(space: string): string {
  return `state/${space}/head`
}

function versionKey(space: string, id: number): string {
  return `${versionsPrefix(space)}${String(id).padStart(12, '0')}`
}

function versionsPrefix(space: string): string {
  return `state/${space}/at/`
}

function readVersion(text: string): Version {
  return read<Version>(text, 'parent')
}

function readHead(text: string): Head {
  return read<Head>(text, 'current')
}

function read<T>(text: string, mark: string): T {
  const value: unknown = JSON.parse(text)
  if (isRecord(value) && typeof value[mark] === 'number') return value as T
  throw new Error('A stored version of the state does not have the expected form. Another program may have written it')
}
