/**
 * Small version steps, inherited along the line of revisions: newest model inside, older wires at the edge.
 * A feature writes one step where a wire differs from its base; the rest follows.
 */
import { revisionById } from './registry.ts'
import type { Revision, RevisionId } from './revision.ts'

export type Wire = Readonly<Record<string, unknown>>
export type VersionStep = (value: Wire) => Wire
export type Steps = Readonly<Partial<Record<RevisionId, VersionStep>>>

/** The revision and those it is built on, newest first. */
export function lineage(revision: Revision): Revision[] {
  const line: Revision[] = []
  for (
    let at: Revision | undefined = revision;
    at !== undefined;
    at = at.base === undefined ? undefined : revisionById(at.base)
  ) {
    line.unshift(at)
  }
  return line
}

/** From the canonical model down to this wire; undefined when nothing differs. */
export function stepsDown(steps: Steps | undefined, revision: Revision): VersionStep | undefined {
  return chain(lineage(revision).map(each => steps?.[each.id]))
}

/** From this wire up to the canonical model. */
export function stepsUp(steps: Steps | undefined, revision: Revision): VersionStep | undefined {
  return chain(
    lineage(revision)
      .map(each => steps?.[each.id])
      .reverse(),
  )
}

/** The value that holds for this revision: its own, else its base's. */
export function inherited<T>(table: Readonly<Partial<Record<RevisionId, T>>> | undefined, revision: Revision): T | undefined {
  if (table === undefined) return undefined
  return lineage(revision)
    .map(each => table[each.id])
    .findLast(value => value !== undefined)
}

function chain(list: (VersionStep | undefined)[]): VersionStep | undefined {
  const present = list.filter(step => step !== undefined)
  if (present.length <= 1) return present[0]
  return value => present.reduce((current, step) => step(current), value)
}
