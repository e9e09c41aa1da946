/** Which scenarios make up one line of the report. */

export interface Scenario {
  readonly name: string
  /** Revisions that have it; empty for an extension. */
  readonly revisions: readonly string[]
}

export type Side = 'server' | 'client'

export interface Line {
  readonly side: Side
  readonly revision: string
  readonly title: string
  /** The revision whose scenarios and schemas the suite uses. */
  readonly wire: string
  /** The server is asked for `revision` by a proxy, because the suite would not. */
  readonly pinned: boolean
  /** Extensions belong to no revision: the suite must be forced to run them. */
  readonly forced: boolean
  readonly scenarios: readonly string[]
}

export const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'] as const

/** For older revisions the suite has no scenarios of its own, so they get those of 2025-06-18, less what they do not know yet. */
const OLDEST_WIRE = '2025-06-18'
const NOT_YET: Readonly<Record<string, readonly string[]>> = {
  '2025-03-26': ['tools-call-elicitation'],
  '2024-11-05': ['tools-call-elicitation', 'tools-call-audio', 'server-session-lifecycle'],
}
/** The suite skips this one itself, always. */
const NEVER_RUNS = 'tasks-status-notifications'
/** Scenarios of no line, by how their names begin, with the reason. */
const LEFT_OUT: readonly (readonly [begins: string, why: string])[] = [
  [NEVER_RUNS, 'the suite skips it itself, always'],
  ['sep-2640-', 'skills (SEP-2640), an extension that Vivarium does not have yet'],
]

export interface LeftOut {
  readonly side: Side
  readonly name: string
  /** Undefined: it has slipped through, and is neither run nor explained. */
  readonly why: string | undefined
}

/** The lines of the report, from the suite's own list of scenarios per side. */
export function planLines(listed: Readonly<Record<Side, readonly Scenario[]>>): Line[] {
  return [...planServer(listed.server), ...planClient(listed.client)]
}

/** What the suite lists and no line runs: told with its reason, so that nothing is left out silently. */
export function leftOut(listed: Readonly<Record<Side, readonly Scenario[]>>): LeftOut[] {
  const lines = planLines(listed)
  return (['server', 'client'] as const).flatMap(side => {
    const run = new Set(lines.flatMap(line => (line.side === side ? line.scenarios : [])))
    return listed[side]
      .filter(({ name }) => !run.has(name))
      .map(({ name }) => ({ side, name, why: LEFT_OUT.find(([begins]) => name.startsWith(begins))?.[1] }))
  })
}

function planServer(listed: readonly Scenario[]): Line[] {
  const lines = REVISIONS.map(revision => {
    const pinned = revision < '2025-11-25'
    const wire = pinned ? OLDEST_WIRE : revision
    const scenarios = names(listed, wire).filter(name => !NOT_YET[revision]?.includes(name))
    return { side: 'server', revision, title: `server ${revision}`, wire, pinned, forced: false, scenarios } as const
  })
  const tasks = listed.filter(({ name, revisions }) => revisions.length === 0 && name.startsWith('tasks-') && name !== NEVER_RUNS)
  const revision = '2026-07-28'
  const extension = {
    side: 'server',
    revision,
    title: `server ${revision} tasks`,
    wire: revision,
    pinned: false,
    forced: true,
  } as const
  return [...lines, { ...extension, scenarios: tasks.map(({ name }) => name) }]
}

/** The suite has nothing for clients of 2024-11-05. */
function planClient(listed: readonly Scenario[]): Line[] {
  const lines = REVISIONS.filter(revision => revision !== '2024-11-05').map(revision =>
    clientLine(revision, names(listed, revision)),
  )
  const extensions = listed.filter(({ name, revisions }) => revisions.length === 0 && name.startsWith('auth/'))
  return [
    ...lines,
    clientLine(
      '2026-07-28',
      extensions.map(({ name }) => name),
      'auth extensions',
    ),
  ]
}

function clientLine(revision: string, scenarios: readonly string[], extension?: string): Line {
  const title = extension === undefined ? `client ${revision}` : `client ${revision} ${extension}`
  return { side: 'client', revision, title, wire: revision, pinned: false, forced: extension !== undefined, scenarios }
}

function names(listed: readonly Scenario[], revision: string): string[] {
  return listed.filter(({ revisions }) => revisions.includes(revision)).map(({ name }) => name)
}
