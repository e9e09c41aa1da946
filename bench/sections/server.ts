/**
 * CPU per request of the servers. All contenders of a row run side by side and take turns, so that a slow minute of
 * the machine hits them alike; the ratio to the floor is taken inside each turn.
 */
import { AnswerCheck } from '../answers.ts'
import type { Carrier, Contender, Mode } from '../contenders.ts'
import { openHttp } from '../load/http.ts'
import type { RoundResult } from '../load/round.ts'
import { openStdio } from '../load/stdio.ts'
import type { Target } from '../load/target.ts'
import { type Options, type Timing, wanted } from '../options.ts'
import { residentBytes } from '../processes.ts'
import { type Cell, failure, type ServerFigures, type ServerRow } from '../results.ts'
import { median } from '../stats.ts'
import { badForm, type Revision, type Work, works } from '../work.ts'

interface Runner {
  contender: Contender
  target?: Target
  failed?: string
}

/** Requests in flight over stdio, connections with one request each over HTTP. */
const IN_FLIGHT = 32

const GROUPS: readonly { carrier: Carrier; revision: Revision }[] = [
  { carrier: 'stdio', revision: '2025-11-25' },
  { carrier: 'stdio', revision: '2026-07-28' },
  { carrier: 'http', revision: '2025-11-25' },
  { carrier: 'http', revision: '2026-07-28' },
]

export async function measureServers(
  options: Options,
  contenders: readonly Contender[],
  done: (row: ServerRow) => void,
): Promise<void> {
  for (const { carrier, revision } of GROUPS) {
    if (!wanted(options, carrier) || !wanted(options, revision)) continue
    const entered = contenders.filter(contender => contender[carrier].includes(revision))
    const chosen = works.filter(
      work => wanted(options, work.name) && (options.only.has(work.name) || options.timing.allRows || telling(work, revision)),
    )
    for (const mode of ['tools', 'list'] as const) {
      const group = chosen.filter(work => (work.name === 'list200') === (mode === 'list'))
      const present = entered.filter(contender => group.some(work => takesPart(contender, work)))
      if (group.length === 0) continue
      const runners = await Promise.all(present.map(contender => open(contender, carrier, mode, revision)))
      let warmMs = options.timing.warmMs
      for (const work of group) {
        const cells = await measureRow(runners, work, revision, { ...options.timing, warmMs })
        done({ carrier, revision, work: work.name, cells })
        warmMs = options.timing.warmMs / 2
      }
      await Promise.all(runners.map(runner => runner.target?.stop()))
    }
  }
}

/** A quick run measures all works at one revision and only `echo` at the other: the rest differs little. */
const telling = (work: Work, revision: Revision): boolean => revision === '2026-07-28' || work.name === 'echo'

const takesPart = (contender: Contender, work: Work): boolean => contender.works?.includes(work.name) ?? true

async function open(contender: Contender, carrier: Carrier, mode: Mode, revision: Revision): Promise<Runner> {
  try {
    const start = carrier === 'stdio' ? openStdio : openHttp
    const target = await start(contender, mode, revision)
    if (mode === 'tools' && contender.name !== 'floor') await expectValidation(target)
    return { contender, target }
  } catch (error) {
    return { contender, ...failure(error) }
  }
}

/** Only the floor may skip validation; anyone else who takes a wrong form is not comparable. */
async function expectValidation(target: Target): Promise<void> {
  const answer = await target.ask('tools/call', badForm)
  const refused = answer.error !== undefined || (answer.result as { isError?: boolean } | undefined)?.isError === true
  if (refused) return
  await target.stop()
  throw new Error('accepted a form with a wrong property')
}

async function measureRow(
  runners: readonly Runner[],
  work: Work,
  revision: Revision,
  timing: Timing,
): Promise<Record<string, Cell<ServerFigures>>> {
  const inFlight = work.name === 'list200' ? timing.listInFlight : IN_FLIGHT
  const taking = runners.filter(runner => takesPart(runner.contender, work))
  const checks = new Map(taking.map(runner => [runner, new AnswerCheck(work, revision)]))
  const rounds = new Map<Runner, RoundResult[]>(taking.map(runner => [runner, []]))

  async function turn(ms: number, keep: boolean): Promise<void> {
    for (const runner of taking) {
      const check = checks.get(runner)
      if (runner.target === undefined || runner.failed !== undefined || check === undefined) continue
      try {
        const result = await runner.target.run(work, check, inFlight, ms)
        if (keep) rounds.get(runner)?.push(result)
      } catch (error) {
        // A server that failed once is out for the rest of its group: what it would still measure means nothing.
        runner.failed = failure(error).failed
        await runner.target.stop()
      }
    }
  }

  await turn(timing.warmMs, false)
  for (let round = 0; round < timing.rounds; round++) await turn(timing.roundMs, true)

  const floorRounds = rounds.get(taking[0] as Runner) ?? []
  const cells: Record<string, Cell<ServerFigures>> = {}
  for (const runner of taking) {
    const { contender, failed, target } = runner
    const bytes = checks.get(runner)?.bytes ?? Number.NaN
    if (failed !== undefined || target === undefined) cells[contender.name] = { failed: failed ?? 'not started' }
    else cells[contender.name] = summarise(rounds.get(runner) ?? [], floorRounds, target.pid, bytes)
  }
  return cells
}

function summarise(mine: RoundResult[], floor: RoundResult[], pid: number, answerBytes: number): ServerFigures {
  const cost = (round: RoundResult | undefined): number => (round === undefined ? Number.NaN : round.cpuMicros / round.requests)
  const ratios = mine.map((round, index) => cost(round) / cost(floor[index]))
  return {
    cpuMicros: median(mine.map(cost)),
    cpuSecondsPer1000: median(mine.map(cost)) / 1000,
    ratio: median(ratios),
    ratios,
    requestsPerSecond: median(mine.map(round => (round.requests / round.ms) * 1000)),
    p50Ms: median(mine.map(round => round.p50)),
    p99Ms: median(mine.map(round => round.p99)),
    rssMb: residentBytes(pid) / 2 ** 20,
    answerBytes,
  }
}
