/**
 * What a tool pays for the reliability features that it does not use: the same server built with and without them, side by side,
 * taking turns. The one without is there twice: how far it is from itself says what the others' distance from the two is worth.
 */
import { AnswerCheck } from '../answers.ts'
import type { Contender } from '../contenders.ts'
import { openStdio } from '../load/stdio.ts'
import type { Target } from '../load/target.ts'
import { type Options, wanted } from '../options.ts'
import { failure, type PlainRow } from '../results.ts'
import { median } from '../stats.ts'
import { sampleOf, turns } from '../turns.ts'
import { buildVariants } from '../variants/build.ts'
import { type Revision, type Work, works } from '../work.ts'

const IN_FLIGHT = 32
const ROUNDS = 7
const SLICES = 12

export async function measurePlain(options: Options, row: (row: PlainRow) => void): Promise<void> {
  const { all, none } = await buildVariants()
  const contenders = [variant('none', none), variant('none again', none), variant('all', all), variant('beside', all, 'beside')]
  const echo = works.find(work => work.name === 'echo')
  if (echo === undefined) throw new Error('There is no work called echo')
  for (const revision of ['2025-11-25', '2026-07-28'] as const) {
    if (!wanted(options, revision)) continue
    try {
      row({ revision, cells: await measureOne(options, contenders, echo, revision) })
    } catch (error) {
      row({ revision, cells: { all: failure(error) } })
    }
  }
}

function variant(name: string, address: string, ...more: string[]): Contender {
  const both: readonly Revision[] = ['2025-11-25', '2026-07-28']
  return { name, stdio: both, http: [], script: () => 'servers/variant.mjs', args: () => [address, ...more] }
}

async function measureOne({ timing }: Options, contenders: readonly Contender[], work: Work, revision: Revision) {
  const check = new AnswerCheck(work, revision)
  const targets = new Map<string, Target>()
  try {
    for (const contender of contenders) targets.set(contender.name, await openStdio(contender, 'tools', revision))
    const costs = new Map<string, number[]>(contenders.map(({ name }) => [name, []]))
    const order = [...targets]
    for (const [, target] of order) await target.run(work, check, IN_FLIGHT, timing.warmMs)
    for (let round = 0; round < ROUNDS; round++) {
      const slice = (target: Target) => target.run(work, check, IN_FLIGHT, timing.roundMs / SLICES)
      const spent = await turns(order, SLICES, async target => sampleOf(await slice(target)))
      for (const [name, cost] of spent) costs.get(name)?.push(cost)
    }
    const [one = [], two = []] = [costs.get('none'), costs.get('none again')]
    const without = one.map((cost, round) => (cost + (two[round] ?? Number.NaN)) / 2)
    const against = (name: string) => (name === 'none again' ? one : without)
    return Object.fromEntries([...costs].map(([name, mine]) => [name, figuresOf(mine, against(name))]))
  } finally {
    await Promise.all([...targets.values()].map(target => target.stop()))
  }
}

function figuresOf(mine: readonly number[], yardstick: readonly number[]) {
  const ratios = mine.map((cost, round) => cost / (yardstick[round] ?? Number.NaN))
  return { cpuMicros: median(mine), ratio: median(ratios), ratios }
}
