/**
 * A gateway between clients and servers, HTTP on both sides: what its process spends on a call as a multiple of what the server
 * behind it spends when it is asked directly, both in the same turns; what it holds before 200 servers; and what happens when one of
 * two servers is killed under load.
 */
import { AnswerCheck } from '../answers.ts'
import type { Contender } from '../contenders.ts'
import { openHttp } from '../load/http.ts'
import { startHttp } from '../load/http-server.ts'
import type { RoundResult } from '../load/round.ts'
import type { Target } from '../load/target.ts'
import { type Options, type Timing, wanted } from '../options.ts'
import { launch, residentBytes, STEP_MS, within } from '../processes.ts'
import { failure, type GatewayRow } from '../results.ts'
import { median } from '../stats.ts'
import { type Revision, type Work, works } from '../work.ts'
import { killUnderLoad } from './gateway-kill.ts'

const IN_FLIGHT = 32
const revisions: readonly Revision[] = ['2025-11-25', '2026-07-28']
const UPSTREAMS = 200
const TOOLS = 20

export const direct: Contender = {
  name: 'direct',
  stdio: [],
  http: revisions,
  script: () => 'servers/vivarium.mjs',
  args: (carrier, mode, revision) => [carrier, mode, revision, 'json'],
}

export function gatewayBefore(servers: Readonly<Record<string, number>>): Contender {
  const words = Object.entries(servers).map(([name, port]) => `${name}=http://127.0.0.1:${port}/mcp`)
  return {
    name: 'gateway',
    stdio: [],
    http: revisions,
    script: () => 'servers/gateway.mjs',
    args: () => ['memory:', ...words],
  }
}

export async function measureGateway(options: Options, done: (row: GatewayRow) => void): Promise<void> {
  for (const revision of revisions) {
    if (!wanted(options, revision)) continue
    for (const name of ['echo', 'form20'] as const) {
      if (!wanted(options, name)) continue
      const cell = await overhead(options, revision, name).catch(failure)
      done({ what: `CPU per call, ${revision} ${name}`, cells: { gateway: cell } })
    }
  }
  const [servers, tools] = options.quick ? [20, TOOLS] : [UPSTREAMS, TOOLS]
  done({ what: `${servers} servers of ${tools} tools`, cells: { gateway: await memory(servers, tools).catch(failure) } })
  done({ what: 'one of two servers killed under load', cells: { gateway: await killUnderLoad(options).catch(failure) } })
}

async function overhead(
  { timing }: Options,
  revision: Revision,
  name: string,
): Promise<{ micros: number; direct: number; ratio: number }> {
  const work = works.find(each => each.name === name)
  if (work === undefined) throw new Error(`there is no work ${name}`)
  const behind = await startHttp(direct, 'tools', revision)
  const targets: Target[] = []
  try {
    targets.push(await openHttp(direct, 'tools', revision))
    targets.push(await openHttp(gatewayBefore({ bench: behind.port }), 'tools', revision))
    const checks = targets.map(() => new AnswerCheck(work, revision))
    const turn = async (ms: number): Promise<readonly number[]> => {
      const costs: number[] = []
      for (const [i, target] of targets.entries())
        costs.push(costOf(await target.run(work, checks[i] as AnswerCheck, IN_FLIGHT, ms)))
      return costs
    }
    for (const [i, target] of targets.entries()) await warm(target, work, checks[i] as AnswerCheck, timing)
    const rounds: (readonly number[])[] = []
    for (let round = 0; round < timing.rounds; round++) rounds.push(await turn(timing.roundMs))
    return {
      direct: median(rounds.map(([one = Number.NaN]) => one)),
      micros: median(rounds.map(([, two = Number.NaN]) => two)),
      ratio: median(rounds.map(([one = Number.NaN, two = Number.NaN]) => two / one)),
    }
  } finally {
    for (const target of targets) await target.stop()
    await behind.child.stop()
  }
}

/** V8 compiles by calls, not by time: both have answered as many before they are compared. */
async function warm(target: Target, work: Work, check: AnswerCheck, { warmMs, warmCalls }: Timing): Promise<void> {
  const until = performance.now() + 10 * warmMs
  let calls = 0
  do calls += (await target.run(work, check, IN_FLIGHT, warmMs)).requests
  while (calls < warmCalls && performance.now() < until)
}

function costOf({ cpuMicros, requests }: RoundResult): number {
  return cpuMicros / requests
}

async function memory(servers: number, tools: number): Promise<{ rssMb: number }> {
  const stubs = launch('servers/stubs.mjs', [String(servers), String(tools)])
  try {
    const ports = await within(STEP_MS, 'stubs', Promise.race([readyLine(stubs.process.stdout), stubs.gone]))
    const named = Object.fromEntries(ports.split(',').map((port, i) => [`s${i}`, Number(port)]))
    const target = await openHttp(gatewayBefore(named), 'tools', '2026-07-28')
    try {
      const listed = await target.ask('tools/list', {})
      const found = (listed['result'] as { tools?: readonly unknown[] } | undefined)?.tools?.length ?? 0
      if (found === 0) throw new Error('the gateway lists no tools')
      return { rssMb: residentBytes(target.pid) / 2 ** 20 }
    } finally {
      await target.stop()
    }
  } finally {
    await stubs.stop()
  }
}

function readyLine(stdout: NodeJS.ReadableStream): Promise<string> {
  return new Promise(resolve => {
    let text = ''
    stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      const ready = /^ready (.*)\n/m.exec(text)?.[1]
      if (ready !== undefined) resolve(ready)
    })
  })
}
