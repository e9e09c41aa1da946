/**
 * The rules inside src/features: families in their order, features that meet only in each other's `messages.ts`, and sides that
 * never see each other. A file directly in features/ or in a family is a list (one export line per feature and role).
 */
import { FAMILIES, MOST_IMPORTERS } from './rooms.ts'

/** One relative import from one file of src/features to another. */
export interface Located {
  readonly path: string
  readonly line: number
  readonly target: string
}

interface Place {
  readonly family: string | undefined
  readonly feature: string | undefined
  /** The file without `.ts`, e.g. `messages`; a path for files in subfolders. */
  readonly part: string
}

const MAY_NOT_SEE: Readonly<Record<string, readonly string[]>> = {
  messages: ['server', 'client', 'host'],
  server: ['client', 'host'],
  client: ['server', 'host'],
}

export function findFeatureProblems(imports: readonly Located[]): string[] {
  return imports.flatMap(one => {
    const problem = judge(place(one.path), place(one.target), one) ?? hiddenWay(one, imports)
    return problem ? [`${one.path}:${one.line}: ${problem}`] : []
  })
}

/** Features that too many files of server, client and engine know. */
export function findCrowdedFeatures(imports: readonly Located[]): string[] {
  const roles = imports.filter(({ path }) => /^src\/(server|client|engine)\//.test(path))
  const byFeature = Map.groupBy(roles, ({ target }) => /^src\/features\/[^/]+\/[^/]+(?=\/)/.exec(target)?.[0])
  return [...byFeature].flatMap(([feature, all]) => {
    const most = MOST_IMPORTERS[feature?.split('/')[2] ?? '']
    const files = [...new Set(all.map(({ path }) => path))]
    if (most === undefined || files.length <= most) return []
    const remedy = 'use its port, or members that it declares'
    return [
      `${feature}: ${files.length} files of server, client and engine import it, at most ${most}: ${files.join(', ')}; ${remedy}`,
    ]
  })
}

/** src/features/mcp/tools/server.ts → mcp, tools, server. */
function place(path: string): Place {
  const names = path.replace(/\.ts$/, '').split('/').slice(2)
  if (names.length <= 2)
    return { family: names.length === 2 ? names[0] : undefined, feature: undefined, part: names.at(-1) ?? '' }
  return { family: names[0], feature: names[1], part: names.slice(2).join('/') }
}

function judge(from: Place, to: Place, { target }: Located): string | undefined {
  if (rank(to) > rank(from)) {
    return `family ${from.family} may not import ${target}: ${to.family} builds on ${from.family}, not the reverse (${FAMILIES.join(' ◀ ')})`
  }
  if (from.feature === undefined) return judgeList(from, to)
  if (to.feature === undefined)
    return `a feature may not import ${target}, which lists features; import the messages.ts of the one you need`
  if (from.family === to.family && from.feature === to.feature) return judgeSides(from.part, to.part, from.feature)
  if (to.part === 'messages') return undefined
  return `feature ${from.feature} may import only messages.ts of ${to.feature}, not ${target}; joint behaviour is a core function or a layer on a stage`
}

/** Files directly in features/ see every family; an unknown family is judged as the highest. */
function rank({ family }: Place): number {
  if (family === undefined) return FAMILIES.length
  const found = FAMILIES.indexOf(family)
  return found < 0 ? FAMILIES.length : found
}

function judgeList(from: Place, to: Place): string | undefined {
  if (!MAY_NOT_SEE[from.part]?.includes(to.part)) return undefined
  return `a list of ${from.part} sides may not import a ${to.part} side; keep one list per role`
}

function judgeSides(from: string, to: string, feature: string): string | undefined {
  if (!MAY_NOT_SEE[from]?.includes(to)) return undefined
  return `${from}.ts of ${feature} may not import its ${to}.ts (messages ◀ server, client ◀ host); move what both need to messages.ts or a file of its own`
}

/** A side that reaches another through a third file of its feature. */
function hiddenWay(start: Located, imports: readonly Located[]): string | undefined {
  const from = place(start.path)
  const forbidden = MAY_NOT_SEE[from.part]
  if (from.feature === undefined || forbidden === undefined) return undefined
  const seen = new Set([start.target])
  for (const file of seen) {
    for (const next of imports) {
      const to = place(next.target)
      if (next.path !== file || to.family !== from.family || to.feature !== from.feature) continue
      if (next.target !== start.path && forbidden.includes(to.part)) {
        return `${from.part}.ts of ${from.feature} reaches its ${to.part}.ts through ${file}; take that import out of ${file}`
      }
      seen.add(next.target)
    }
  }
  return undefined
}
