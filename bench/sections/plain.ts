/**
 * What a tool pays for the reliability features that it does not use: the same server built with and without them, side by side,
 * taking turns. One of those without is measured twice: how far it is from itself says what the others' distance is worth.
 */
import { AnswerCheck } from '../answers.ts'
import type { Contender } from '../contenders.ts'
import { openStdio } from '../load/stdio.ts'
import type { Target } from '../load/target.ts'
import { type Options, wanted } from '../options.ts'
import { failure, type PlainRow } from '../results.ts'
import { median } from '../stats.ts'
import { buildVariants } from '../variants/build.ts'
import { type Revision, type Work, works } from '../work.ts'

const IN_FLIGHT = 32
const ROUNDS = 7

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
    const turn = async (ms: number, order: readonly (readonly [string, Target])[]): Promise<void> => {
      for (const [name, target] of order) {
        const { cpuMicros, requests } = await target.run(work, check, IN_FLIGHT, ms)
        costs.get(name)?.push(cpuMicros / requests)
      }
    }
    const order = [...targets]
    await turn(timing.warmMs, order)
    // There and back, so that nobody always comes after the same one.
    for (let round = 0; round < ROUNDS; round++) await turn(timing.roundMs, round % 2 === 0 ? order : order.toReversed())
    return Object.fromEntries(
      [...costs].map(([name, mine]) => [name, figuresOf(mine.slice(1), costs.get('none')?.slice(1) ?? [])]),
    )
  } finally {
    await Promise.all([...targets.values()].map(target => target.stop()))
  }
}

function figuresOf(mine: readonly number[], yardstick: readonly number[]) {
  const ratios = mine.map((cost, round) => cost / (yardstick[round] ?? Number.NaN))
  return { cpuMicros: median(mine), ratio: median(ratios), ratios }
}
