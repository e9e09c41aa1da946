/** One line of the report for a client: the suite plays the server and starts the client once per scenario. */
import { availableParallelism } from 'node:os'
import { type Failure, judge, judgeClientEnd, judgeOffer, type Verdict } from './judge.ts'
import type { Line } from './plan.ts'
import { readResults, type Suite } from './suite.ts'

const CLIENT_MS = 20_000
/** Measures milliseconds, so nothing runs beside it. */
const ALONE = 'sse-retry'

export async function judgeClient(line: Line, command: string, suite: Suite, folder: string): Promise<Verdict[]> {
  const ends = new Map<string, Failure[]>()
  const runOne = async (name: string) => {
    const args = ['client', '--command', command, '--scenario', name, '--spec-version', line.wire, '--force']
    try {
      const { status, output } = await suite.run([...args, '--timeout', String(CLIENT_MS), '-o', folder], CLIENT_MS + 20_000)
      ends.set(name, judgeClientEnd(output, status !== 0))
    } catch (error) {
      ends.set(name, [{ id: 'suite', message: String(error) }])
    }
  }
  const queue = line.scenarios.filter(name => name !== ALONE)
  const work = async () => {
    for (let name = queue.shift(); name; name = queue.shift()) await runOne(name)
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work))
  if (line.scenarios.includes(ALONE)) await runOne(ALONE)
  const results = readResults(folder, 'client')
  return line.scenarios.map(name => {
    const checks = results.get(name)
    return judge(name, checks, [...judgeOffer(checks, line.revision), ...(ends.get(name) ?? [])])
  })
}
