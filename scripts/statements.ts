/**
 * `npm run statements`: lists the ids of test/statements.txt with the tests that prove them and the scenarios of the conformance kit
 * that show them from outside, and fails where an id of a group that is `now` has no test, where a test names an id that does not
 * exist, or where one of MCP Live is not tried on every carrier. That what can be seen from outside has a scenario is a test of the
 * kit (E12-3).
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { listFiles, root } from './lib/files.ts'
import { carrierBlocks, endOf, liveCarriers, readEnds } from './lib/live-carriers.ts'

export interface Group {
  readonly name: string
  readonly now: boolean
  readonly ids: readonly string[]
}

const ID = /\b(?:E\d{1,2}-\d{1,2}|X\d{1,2}|L\d{1,2}(?:\.\d)?-\d|L[AB]-1)\b/g
/** Rulings where MCP Live is silent or says two things: named so in its own rooms only. */
const RULING = /\b(?:A(?:1?\d|2[01])|T[1-7])\b/g
const RULED = /^(?:src\/(?:features\/live|client\/live|server\/live|host)|test\/(?:live|hosting))/
const TITLE = /\b(?:test|it|describe)(?:\.\w+(?:\([^)]*\))?)*\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g

export function readGroups(text: string): readonly Group[] {
  const groups: { name: string; now: boolean; ids: string[] }[] = []
  for (const line of text.split('\n')) {
    const [, when, name] = /^(now|later) (.+)$/.exec(line) ?? []
    if (name !== undefined) groups.push({ name, now: when === 'now', ids: [] })
    else if (/^(?:[EXLAT]\d|L[AB]-)/.test(line)) groups.at(-1)?.ids.push(...line.split(' '))
  }
  return groups
}

/** The titles of tests in a source that name ids, by id. */
export function readTitles(source: string, pattern = ID): readonly (readonly [id: string, title: string])[] {
  return [...source.matchAll(TITLE)].flatMap(([, , title = '']) =>
    [...title.matchAll(pattern)].map(([id]) => [id, title] as const),
  )
}

function proofs(): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  for (const path of listFiles(['src', 'test', 'scripts'], /\.test\.ts$|contract\.ts$|sentences\.ts$/)) {
    const source = readFileSync(join(root, path), 'utf8')
    const titles = [...readTitles(source), ...(RULED.test(path) ? readTitles(source, RULING) : [])]
    for (const [id, title] of titles) found.set(id, [...(found.get(id) ?? []), `${path}: ${title}`])
  }
  return found
}

/** Tests of each statement by end and carrier. */
function onCarriers(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const path of listFiles(['test'], /\.test\.ts$/)) {
    const end = endOf(path)
    if (end === undefined) continue
    for (const { carriers, text } of carrierBlocks(readFileSync(join(root, path), 'utf8')))
      for (const [id] of readTitles(text))
        for (const carrier of carriers) {
          const key = `${end} ${id} ${carrier}`
          counts.set(key, (counts.get(key) ?? 0) + 1)
        }
  }
  return counts
}

/** Prints how many tests there are for each end and carrier; gives the number of those without any. */
function tellCarriers(statements: string): number {
  const counts = onCarriers()
  let gaps = 0
  for (const [end, ids] of readEnds(statements)) {
    console.log(`MCP Live, ${end.padEnd(8)}${liveCarriers.join('  ')}`)
    for (const id of ids) {
      const cells = liveCarriers.map(carrier => {
        const count = counts.get(`${end} ${id} ${carrier}`) ?? 0
        if (count === 0) gaps++
        return (count === 0 ? '-' : String(count)).padEnd(carrier.length)
      })
      console.log(`  ${id.padEnd(16)}${cells.join('  ')}`)
    }
  }
  return gaps
}

/** How many scenarios of the kit prove an id, by role; or why none can. */
async function kit(): Promise<(id: string) => string> {
  const { clientScenarios, hostScenarios, scenarios } = await import('../src/conformance/index.ts')
  const { callerStatements } = await import('../src/conformance/clients/statements.ts')
  const { serverStatements } = await import('../src/conformance/statements.ts')
  const all = [...scenarios, ...clientScenarios, ...hostScenarios]
  return id => {
    const roles = all.filter(({ proves }) => proves.includes(id)).map(({ role }) => role)
    const counts = [...new Set(roles)].map(role => `${role} ${roles.filter(one => one === role).length}`)
    if (counts.length > 0) return `kit: ${counts.join(', ')}`
    const how = serverStatements.get(id) ?? callerStatements.get(id)
    return how === undefined || how === 'seen' ? '' : `hidden: ${how.hidden}`
  }
}

if (import.meta.main) {
  const shown = await kit()
  const statements = readFileSync(join(root, 'test', 'statements.txt'), 'utf8')
  const groups = readGroups(statements)
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
      if (shown(id) !== '') console.log(`           ${shown(id)}`)
    }
  }
  const unknown = [...found.keys()].filter(id => !known.has(id))
  for (const id of unknown) console.log(`  ${id} is no statement, but named by ${found.get(id)?.[0]}`)
  const untried = tellCarriers(statements)
  const all = groups.filter(group => group.now).flatMap(group => group.ids)
  console.log(
    `statements: ${all.length - gaps} of ${all.length} proved${unknown.length > 0 ? `, ${unknown.length} unknown` : ''}`,
  )
  console.log(`MCP Live on its carriers: ${untried === 0 ? 'each tried on all four' : `${untried} not tried`}`)
  process.exitCode = gaps + untried > 0 || unknown.length > 0 ? 1 : 0
}
