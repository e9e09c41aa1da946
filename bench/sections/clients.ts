/**
 * The client side: the CPU a client process needs per `echo` call against the floor. Clients measure themselves
 * (`clients/rounds.mjs`); here they take turns, and the yardstick is a raw client with the same duties.
 */
import { built, floor } from '../contenders.ts'
import { startHttp } from '../load/http-server.ts'
import { lineReader } from '../load/lines.ts'
import { type Options, wanted } from '../options.ts'
import { type Child, launch, STEP_MS, within } from '../processes.ts'
import { type ClientRow, failure } from '../results.ts'
import { median } from '../stats.ts'
import type { Revision } from '../work.ts'

export interface ClientRound {
  calls: number
  cpuMicros: number
  ms: number
}

export interface MeasuredClient {
  name: string
  round?: (inFlight: number, ms: number) => Promise<ClientRound>
  child: Child
  failed?: string
  results: ClientRound[]
}

const CLIENTS: readonly { name: string; revisions: readonly Revision[] }[] = [
  { name: 'raw', revisions: ['2025-11-25', '2026-07-28'] },
  { name: 'sdk-v1', revisions: ['2025-11-25'] },
  { name: 'sdk-v2', revisions: ['2025-11-25', '2026-07-28'] },
  { name: 'vivarium', revisions: ['2025-11-25', '2026-07-28'] },
]

export async function measureClients(options: Options, done: (row: ClientRow) => void): Promise<void> {
  for (const carrier of ['http', 'stdio'] as const) {
    for (const revision of ['2025-11-25', '2026-07-28'] as const) {
      if (!wanted(options, carrier) || !wanted(options, revision)) continue
      const server = carrier === 'http' ? await startHttp(floor, 'tools', revision) : undefined
      const place = { carrier, revision, url: `http://127.0.0.1:${server?.port}/mcp` }
      const entered = CLIENTS.filter(client => client.revisions.includes(revision) && present(options, client.name))
      const clients = await Promise.all(entered.map(client => openClient(client.name, place)))
      for (const inFlight of options.timing.allRows ? [1, 32] : [32]) {
        await takeTurns(clients, inFlight, options)
        done({ carrier, revision, inFlight, cells: summarise(clients) })
      }
      await Promise.all(clients.map(client => client.child.stop()))
      await server?.child.stop()
    }
  }
}

const present = (options: Options, name: string): boolean =>
  name === 'raw' || (wanted(options, name) && (name !== 'vivarium' || built()))

export async function openClient(name: string, place: object, flags?: readonly string[]): Promise<MeasuredClient> {
  const child = launch(`clients/${name}.mjs`, [JSON.stringify(place)], flags)
  let receive: (line: string) => void = () => {}
  child.process.stdout.on(
    'data',
    lineReader(lines => {
      for (const line of lines) receive(line.toString())
    }),
  )
  const next = (): Promise<string> =>
    within(
      STEP_MS,
      name,
      Promise.race([
        new Promise<string>(resolve => {
          receive = resolve
        }),
        child.gone,
      ]),
    )
  async function round(inFlight: number, ms: number): Promise<ClientRound> {
    const reply = next()
    child.process.stdin.write(`${JSON.stringify({ inFlight, ms })}\n`)
    return JSON.parse(await reply) as ClientRound
  }
  try {
    // Its first line says that it is connected.
    await next()
    return { name, child, round, results: [] }
  } catch (error) {
    return { name, child, results: [], ...failure(error) }
  }
}

async function takeTurns(clients: readonly MeasuredClient[], inFlight: number, options: Options): Promise<void> {
  const { clientRounds, clientRoundMs, clientWarmMs } = options.timing
  for (const client of clients) client.results = []
  for (let turn = 0; turn <= clientRounds; turn++) {
    for (const client of clients) {
      if (client.round === undefined || client.failed !== undefined) continue
      try {
        // The first turn is the warm-up.
        const result = await client.round(inFlight, turn === 0 ? clientWarmMs : clientRoundMs)
        if (turn > 0) client.results.push(result)
      } catch (error) {
        client.failed = failure(error).failed
      }
    }
  }
}

function summarise(clients: readonly MeasuredClient[]): ClientRow['cells'] {
  const cost = (round: ClientRound | undefined): number => (round === undefined ? Number.NaN : round.cpuMicros / round.calls)
  const raw = clients[0]?.results ?? []
  const cells: ClientRow['cells'] = {}
  for (const { name, failed, results } of clients) {
    const ratios = results.map((round, index) => cost(round) / cost(raw[index]))
    cells[name] =
      failed !== undefined
        ? { failed }
        : {
            cpuMicros: median(results.map(cost)),
            ratio: median(ratios),
            ratios,
            callsPerSecond: median(results.map(round => (round.calls / round.ms) * 1000)),
          }
  }
  return cells
}
