/**
 * `npm run statements`: lists the ids of test/statements.txt with the tests that prove them, and fails where an id of a group
 * that is `now` has none, or where a test names an id that does not exist.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { listFiles, root } from './lib/files.ts'

export interface Group {
  readonly name: string
  readonly now: boolean
  readonly ids: readonly string[]
}

const ID = /\b(?:E\d{1,2}-\d{1,2}|X\d{1,2}|L\d{1,2}(?:\.\d)?-\d)\b/g
const TITLE = /\b(?:test|it|describe)(?:\.\w+(?:\([^)]*\))?)*\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g

export function readGroups(text: string): readonly Group[] {
  const groups: { name: string; now: boolean; ids: string[] }[] = []
  for (const line of text.split('\n')) {
    const [, when, name] = /^(now|later) (.+)$/.exec(line) ?? []
    if (name !== undefined) groups.push({ name, now: when === 'now', ids: [] })
    else if (/^[EXL]\d/.test(line)) groups.at(-1)?.ids.push(...line.split(' '))
  }
  return groups
}

/** The titles of tests in a source that name ids, by id. */
export function readTitles(source: string): readonly (readonly [id: string, title: string])[] {
  return [...source.matchAll(TITLE)].flatMap(([, , title = '']) => [...title.matchAll(ID)].map(([id]) => [id, title] as const))
}

function proofs(): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  for (const path of listFiles(['src', 'test', 'scripts'], /\.test\.ts$|contract\.ts$|sentences\.ts$/)) {
    for (const [id, title] of readTitles(readFileSync(join(root, path), 'utf8')))
      found.set(id, [...(found.get(id) ?? []), `${path}: ${title}`])
  }
  return found
}

if (import.meta.main) {
  const groups = readGroups(readFileSync(join(root, 'test', 'statements.txt'), 'utf8'))
  const found = proofs()
  const known = new Set(groups.flatMap(group => group.ids))
  let gaps = 0
  for (const { name, now, ids } of groups) {
    console.log(`${name}${now ? '' : ' (later)'}`)
    for (const id of ids) {
      const [first, ...more] = found.get(id) ?? []
      if (first === undefined && now) gaps++
      const missing = now ? 'NO TEST' : 'later'
      console.log(`  ${id.padEnd(8)} ${first ?? missing}${more.length > 0 ? ` (and ${more.length} more)` : ''}`)
    }
  }
  const unknown = [...found.keys()].filter(id => !known.has(id))
  for (const id of unknown) console.log(`  ${id} is no statement, but named by ${found.get(id)?.[0]}`)
  const all = groups.filter(group => group.now).flatMap(group => group.ids)
  console.log(
    `statements: ${all.length - gaps} of ${all.length} proved${unknown.length > 0 ? `, ${unknown.length} unknown` : ''}`,
  )
  process.exitCode = gaps > 0 || unknown.length > 0 ? 1 : 0
}
