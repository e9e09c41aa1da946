/** Cold start: from spawning a server to its first answer. Contenders take turns; the median of the turns counts. */
import type { Carrier, Contender } from '../contenders.ts'
import { HttpConnection } from '../load/http-connection.ts'
import { greet, startHttp } from '../load/http-server.ts'
import { lineReader } from '../load/lines.ts'
import { type Options, wanted } from '../options.ts'
import { cpuMicros, launch, STEP_MS, within } from '../processes.ts'
import { type ColdRow, failure } from '../results.ts'
import { median } from '../stats.ts'
import { FIRST_ID, opening, type Revision } from '../work.ts'

const ROWS: readonly { carrier: Carrier; revision: Revision; opening: ColdRow['opening'] }[] = [
  { carrier: 'stdio', revision: '2025-11-25', opening: 'initialize' },
  { carrier: 'stdio', revision: '2026-07-28', opening: 'discover' },
  { carrier: 'http', revision: '2025-11-25', opening: 'initialize' },
  { carrier: 'http', revision: '2026-07-28', opening: 'discover' },
]

export async function measureColdStart(
  options: Options,
  contenders: readonly Contender[],
  done: (row: ColdRow) => void,
): Promise<void> {
  for (const row of ROWS) {
    if (!wanted(options, row.carrier) || !wanted(options, row.revision)) continue
    if (row.opening === 'discover' && !options.timing.allRows) continue
    const entered = contenders.filter(contender => contender[row.carrier].includes(row.revision))
    const times = new Map<string, number[]>(entered.map(({ name }) => [name, []]))
    const failed = new Map<string, string>()
    for (let turn = 0; turn < options.timing.coldStarts; turn++) {
      for (const contender of entered) {
        try {
          times.get(contender.name)?.push((await coldStart(row.carrier, contender, row.revision)).ms)
        } catch (error) {
          failed.set(contender.name, failure(error).failed)
        }
      }
    }
    done({ carrier: row.carrier, opening: row.opening, cells: summarise(times, failed) })
  }
}

function summarise(times: Map<string, number[]>, failed: Map<string, string>): ColdRow['cells'] {
  const floor = median(times.get('floor') ?? [])
  const cells: ColdRow['cells'] = {}
  for (const [name, all] of times) {
    const reason = failed.get(name)
    cells[name] = reason === undefined ? { ms: median(all), ratio: median(all) / floor, all } : { failed: reason }
  }
  return cells
}

/** From its spawning to its first answer. */
export interface ColdStart {
  readonly ms: number
  readonly cpuMicros: number
}

export function coldStart(carrier: Carrier, contender: Contender, revision: Revision): Promise<ColdStart> {
  return carrier === 'stdio' ? coldStdio(contender, revision) : coldHttp(contender, revision)
}

async function coldStdio(contender: Contender, revision: Revision): Promise<ColdStart> {
  const started = performance.now()
  const child = launch(contender.script('stdio'), contender.args('stdio', 'tools', revision), contender.flags)
  try {
    const answered = new Promise<ColdStart>(resolve => {
      child.process.stdout.on(
        'data',
        lineReader(() => resolve({ ms: performance.now() - started, cpuMicros: cpuMicros(child.pid) })),
      )
    })
    child.process.stdin.write(`${JSON.stringify(opening(revision, FIRST_ID, contender.handshake))}\n`)
    return await within(STEP_MS, contender.name, Promise.race([answered, child.gone]))
  } finally {
    await child.stop()
  }
}

async function coldHttp(contender: Contender, revision: Revision): Promise<ColdStart> {
  const started = performance.now()
  // No side channel: importing it would be timed too.
  const { child, port } = await startHttp(contender, 'tools', revision, [])
  try {
    const connection = await HttpConnection.open(port)
    await greet(connection, { port, contender, revision })
    const cold = { ms: performance.now() - started, cpuMicros: cpuMicros(child.pid) }
    connection.close()
    return cold
  } finally {
    child.process.kill('SIGKILL')
    await child.stop()
  }
}
