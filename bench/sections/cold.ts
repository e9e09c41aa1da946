/** Cold start: from spawning a server to its first answer. Contenders take turns; the median of the turns counts. */
import type { Carrier, Contender } from '../contenders.ts'
import { HttpConnection } from '../load/http-connection.ts'
import { greet, startHttp } from '../load/http-server.ts'
import { lineReader } from '../load/lines.ts'
import { type Options, wanted } from '../options.ts'
import { launch, STEP_MS, within } from '../processes.ts'
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
          const time = row.carrier === 'stdio' ? coldStdio : coldHttp
          times.get(contender.name)?.push(await time(contender, row.revision))
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

async function coldStdio(contender: Contender, revision: Revision): Promise<number> {
  const started = performance.now()
  const child = launch(contender.script('stdio'), contender.args('stdio', 'tools', revision))
  try {
    const answered = new Promise<number>(resolve => {
      child.process.stdout.on(
        'data',
        lineReader(() => resolve(performance.now())),
      )
    })
    child.process.stdin.write(`${JSON.stringify(opening(revision, FIRST_ID, contender.handshake))}\n`)
    return (await within(STEP_MS, contender.name, Promise.race([answered, child.gone]))) - started
  } finally {
    await child.stop()
  }
}

async function coldHttp(contender: Contender, revision: Revision): Promise<number> {
  const started = performance.now()
  // No side channel: importing it would be timed too.
  const { child, port } = await startHttp(contender, 'tools', revision, [])
  try {
    const connection = await HttpConnection.open(port)
    await greet(connection, { port, contender, revision })
    const elapsed = performance.now() - started
    connection.close()
    return elapsed
  } finally {
    child.process.kill('SIGKILL')
    await child.stop()
  }
}
