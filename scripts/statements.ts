/**
 * `npm run statements`: for each id of test/statements.txt and each role that it binds, how many claims of tests there are, with the
 * first of them, and the scenarios of the conformance kit that show it from outside. Claims are those of the tests that passed in the
 * last whole `npm test`, or, where there was none, those that titles and `proves` make. Fails where a role lacks one, where a test
 * names an id that does not exist or has a way out before its end, or where a statement of MCP Live is not tried on every carrier.
 * That what can be seen from outside has a scenario is a test of the kit (E12-3).
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { listFiles, root } from './lib/files.ts'
import { carrierBlocks, endOf, liveCarriers, readEnds } from './lib/live-carriers.ts'
import { claimsOf, gapsIn, ID, leavingEarly, type Proof, type Role, readBonds, roles } from './lib/proofs.ts'

export interface Group {
  readonly name: string
  readonly now: boolean
  readonly ids: readonly string[]
}

const TITLE = /\b(?:test|it|describe)(?:\.\w+(?:\([^)]*\))?)*\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g
const PROVES = /\bproves\('([^']+)', '([a-z]+)'/g

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

export interface Claim extends Proof {
  /** File and title. */
  readonly where: string
}

/** What titles and `proves` claim, whether or not they pass. The tests of this script itself speak of ids without proving any. */
export function claims(): readonly Claim[] {
  const found: Claim[] = []
  for (const path of sources()) {
    const source = readFileSync(join(root, path), 'utf8')
    for (const [, , title = ''] of source.matchAll(TITLE))
      for (const proof of claimsOf(path, title)) found.push({ ...proof, where: `${path}: ${title}` })
    for (const [, id = '', role] of source.matchAll(PROVES)) found.push({ id, role: role as Role, where: `${path}: proves` })
  }
  return found
}

/** Tests that claim a statement and may pass without having shown it. */
export function evading(): readonly string[] {
  return sources().flatMap(path => leavingEarly(readFileSync(join(root, path), 'utf8')).map(title => `${path}: ${title}`))
}

function sources(): readonly string[] {
  return listFiles(['src', 'test'], /\.test\.ts$|contract\.ts$|sentences\.ts$/)
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

/** What the last whole run found; undefined where there was none. */
function lastRun(): { readonly at: string; readonly proofs: readonly Proof[] } | undefined {
  const file = join(root, '.cache', 'proofs.json')
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined
}

async function tell(): Promise<void> {
  const shown = await kit()
  const statements = readFileSync(join(root, 'test', 'statements.txt'), 'utf8')
  const groups = readGroups(statements)
  const [bonds, made, run] = [readBonds(statements), claims(), lastRun()]
  const counted: readonly Proof[] = run?.proofs ?? made
  console.log(run === undefined ? 'As tests claim it; no whole run is known' : `By the tests that passed in the run of ${run.at}`)
  for (const { name, now, ids } of groups) {
    console.log(`${name}${now ? '' : ' (later)'}`)
    for (const id of ids) {
      const cells = roles.flatMap(role => {
        const count = counted.filter(proof => proof.id === id && proof.role === role).length
        const bound = bonds.get(id)?.includes(role) === true
        return count > 0 ? [`${role} ${count}`] : bound ? [`${role} ${now ? 'NO TEST' : 'later'}`] : []
      })
      console.log(`  ${id.padEnd(8)} ${cells.join(', ') || 'NO TEST'}; ${made.find(claim => claim.id === id)?.where ?? ''}`)
      if (shown(id) !== '') console.log(`           ${shown(id)}`)
    }
  }
  const all = groups.filter(group => group.now).flatMap(group => group.ids)
  const known = new Set(groups.flatMap(group => group.ids))
  const unknown = made.filter(({ id }) => !known.has(id))
  for (const { id, where } of unknown) console.log(`  ${id} is no statement, but named by ${where}`)
  for (const title of evading()) console.log(`  may pass without having shown anything: ${title}`)
  const untried = tellCarriers(statements)
  const gaps = gapsIn(all, bonds, counted)
  for (const { id, role } of gaps) console.log(`  ${id} lacks a test${role === undefined ? '' : ` for the ${role}`}`)
  console.log(`statements: ${all.length - new Set(gaps.map(({ id }) => id)).size} of ${all.length} proved for whom they bind`)
  console.log(`MCP Live on its carriers: ${untried === 0 ? 'each tried on all four' : `${untried} not tried`}`)
  process.exitCode = gaps.length + untried + unknown.length + evading().length > 0 ? 1 : 0
}

if (import.meta.main) await tell()
