/**
 * `npm run bench -- --against DIR`: this checkout beside another one. A row that looks worse than the limit is measured again with new
 * processes, and counts by the median of its tries; any that stays worse fails the run.
 */
import { writeFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import type { Options } from '../options.ts'
import { failure } from '../results.ts'
import { median } from '../stats.ts'
import { render, times } from '../table.ts'
import { prepareBuilds } from './builds.ts'
import { type Compared, compare, type Pace, type Subject } from './compare.ts'
import { subjectsFor } from './subjects.ts'

const WORSE = 1.05
const TRIES = 3
const FULL: Pace = { warmMs: 1500, roundMs: 500, rounds: 8, slices: 5 }
const QUICK: Pace = { warmMs: 300, roundMs: 120, rounds: 3, slices: 3 }
/** A start is one sample, so there are more rounds of them. */
const STARTS = 3

interface Row {
  readonly section: string
  readonly name: string
  readonly unit: string
  readonly tries: readonly Compared[]
  readonly failed?: string
}

/** Whether no row is worse. */
export async function runAgainst(options: Options, against: string): Promise<boolean> {
  const builds = prepareBuilds(against)
  const started = performance.now()
  const rows: Row[] = []
  for (const subject of subjectsFor(options)) {
    const row = await measured(subject, options, pace => compare(subject, builds, pace))
    rows.push(row)
    console.log(`  ${told(row)}`)
  }
  const bad = rows.filter(row => isWorse(row) || row.failed !== undefined)
  console.log(`\n${render([['', 'this', builds[1].folder, 'ratio', 'same build', 'tries'], ...rows.map(cells)])}`)
  const load = `${availableParallelism()} cores, load average ${loadavg()[0]?.toFixed(2)} at the end`
  console.log(`\n${load}, ${((performance.now() - started) / 1000).toFixed(0)} s`)
  console.log(`${rows.length - bad.length} of ${rows.length} rows not worse than ${WORSE}`)
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(rows, undefined, 2)}\n`)
  return bad.length === 0 && rows.length > 0
}

async function measured(subject: Subject, { quick }: Options, once: (pace: Pace) => Promise<Compared>): Promise<Row> {
  const { section, name, unit } = subject
  const pace = quick ? QUICK : FULL
  const tries: Compared[] = []
  try {
    do tries.push(await once(section === 'cold' ? { ...pace, rounds: pace.rounds * STARTS } : pace))
    while (ratioOf(tries) > WORSE && tries.length < TRIES)
    return { section, name, unit, tries }
  } catch (error) {
    return { section, name, unit, tries, ...failure(error) }
  }
}

const ratioOf = (tries: readonly Compared[]): number => median(tries.map(({ ratio }) => ratio))

const isWorse = ({ tries }: Row): boolean => !(ratioOf(tries) <= WORSE)

function told(row: Row): string {
  const verdict = row.failed ?? (isWorse(row) ? 'worse' : '')
  return `${row.section} ${row.name}: ${times(ratioOf(row.tries))} ${verdict}`.trimEnd()
}

function cells(row: Row): string[] {
  const { section, name, unit, tries, failed } = row
  if (failed !== undefined) return [`${section} ${name}`, 'failed', failed]
  const of = (figure: keyof Compared): number => median(tries.map(each => each[figure]))
  const cost = (value: number): string => `${value.toFixed(value < 1000 ? 1 : 0)} ${unit}`
  const mark = isWorse(row) ? ' worse' : ''
  return [
    `${section} ${name}${mark}`,
    cost(of('mine')),
    cost(of('other')),
    times(of('ratio')),
    times(of('noise')),
    `${tries.length}`,
  ]
}
