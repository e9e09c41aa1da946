/**
 * One row of a comparison: the same work by two builds, each in two processes of its own, all four taking turns. Two processes of one
 * build differ as well (V8 compiles each in its own way); how far they do says what a difference between the builds is worth.
 */
import { quantile } from '../stats.ts'
import { type Sample, turns } from '../turns.ts'
import type { Build } from './builds.ts'

/** A process at work. */
export interface Worker {
  sample(ms: number): Promise<Sample>
  stop(): Promise<void>
}

export interface Subject {
  readonly section: string
  readonly name: string
  readonly unit: 'µs' | 'bytes'
  /** A sample has a length of its own, whatever time it is given, and needs no warm-up. */
  readonly whole?: true
  /** How many times the usual warm-up it needs: V8 compiles by calls, and what answers slowly gets fewer of them. */
  readonly warmUps?: number
  open(build: Build): Promise<Worker>
}

export interface Pace {
  readonly warmMs: number
  readonly roundMs: number
  readonly rounds: number
  readonly slices: number
}

export interface Compared {
  readonly mine: number
  readonly other: number
  /** What this build costs as a multiple of the other. */
  readonly ratio: number
  /** How far two processes of one build are apart, as a multiple. */
  readonly noise: number
}

export async function compare(subject: Subject, [mine, other]: readonly [Build, Build], pace: Pace): Promise<Compared> {
  const workers: (readonly [string, Worker])[] = []
  try {
    // Who comes first is warm first: each build once.
    for (const [copy, order] of [[mine, other] as const, [other, mine] as const].entries())
      for (const build of order) workers.push([`${build.name} ${copy + 1}`, await subject.open(build)])
    if (subject.whole === undefined) for (const [, worker] of workers) await worker.sample(pace.warmMs * (subject.warmUps ?? 1))
    const rounds: Map<string, number>[] = []
    for (let round = 0; round < pace.rounds; round++)
      rounds.push(await turns(workers, subject.whole ? 1 : pace.slices, worker => worker.sample(pace.roundMs / pace.slices)))
    return summarise(rounds)
  } finally {
    await Promise.all(workers.map(([, worker]) => worker.stop()))
  }
}

/** What disturbs a process only ever adds to its cost, so the lower quartile of its rounds says most about the build. */
function summarise(rounds: readonly Map<string, number>[]): Compared {
  const cost = (name: string): number =>
    quantile(
      rounds.map(round => round.get(name) ?? Number.NaN),
      0.25,
    )
  const pair = (name: string): readonly [number, number] => [cost(`${name} 1`), cost(`${name} 2`)]
  const mean = ([one, two]: readonly [number, number]): number => (one + two) / 2
  const apart = ([one, two]: readonly [number, number]): number => Math.max(one / two, two / one)
  const [mine, other] = [pair('this'), pair('other')]
  return {
    mine: mean(mine),
    other: mean(other),
    ratio: mean(mine) / mean(other),
    noise: Math.max(apart(mine), apart(other)),
  }
}
