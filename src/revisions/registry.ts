/** All wires, by id and by what they call themselves. */
import { rev20241105 } from './2024-11-05.ts'
import { rev20250326 } from './2025-03-26.ts'
import { rev20250618 } from './2025-06-18.ts'
import { rev20251125 } from './2025-11-25.ts'
import { rev20260728 } from './2026-07-28.ts'
import { revDraft2026v1 } from './draft-2026-v1.ts'
import type { Revision, RevisionId } from './revision.ts'
import { revS3 } from './s3.ts'

/** In order of `ordinal`. */
export const revisions: readonly Revision[] = [
  rev20241105,
  rev20250326,
  rev20250618,
  rev20251125,
  rev20260728,
  revDraft2026v1,
  revS3,
]

const byId = new Map<string, Revision>(revisions.map(revision => [revision.id, revision]))

export function revisionById(id: RevisionId): Revision {
  const revision = byId.get(id)
  if (revision === undefined) {
    throw new TypeError(`There is no revision "${id}". Known are ${[...byId.keys()].join(', ')}`)
  }
  return revision
}

/** The five official ones; the draft and the dialect speak only when listed. */
export const officialRevisions: readonly RevisionId[] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28']

/** The wires that one peer speaks, looked up by what a message may say. */
export class Spoken {
  readonly all: readonly Revision[]
  /** Session wires, newest first, without the dialect. */
  readonly sessions: readonly Revision[]
  /** Request wires, newest first. */
  readonly requests: readonly Revision[]
  readonly dialect: Revision | undefined
  readonly #byWire: ReadonlyMap<string, Revision>

  constructor(ids: readonly RevisionId[] = officialRevisions) {
    if (ids.length === 0) throw new TypeError('revisions: [] leaves nothing to speak; list at least one, or leave the option out')
    this.all = ids.map(revisionById)
    const official = this.all.filter(revision => revision.id !== 's3')
    this.sessions = newestFirst(official.filter(revision => revision.era === 'session'))
    this.requests = newestFirst(official.filter(revision => revision.era === 'request'))
    this.dialect = this.all.find(revision => revision.id === 's3')
    this.#byWire = new Map(official.map(revision => [revision.wire, revision]))
  }

  /** 2024-10-07 is what early peers called the wire that became 2024-11-05. */
  byWire(version: string): Revision | undefined {
    return this.#byWire.get(version === '2024-10-07' ? '2024-11-05' : version)
  }

  get wires(): string[] {
    return [...this.sessions, ...this.requests].map(revision => revision.wire)
  }
}

/** The draft came before the release it led to, whatever its name sorts like. */
function newestFirst(list: Revision[]): Revision[] {
  const age = (revision: Revision): number => (revision.id === 'draft-2026-v1' ? 3.5 : revision.ordinal)
  return list.sort((a, b) => age(b) - age(a))
}
