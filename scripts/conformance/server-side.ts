/** One line of the report for a server: start it, let the suite be its client, judge. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Failure, judge, type Verdict } from './judge.ts'
import { openPinProxy } from './pin-proxy.ts'
import type { Line } from './plan.ts'
import { answers, freePort, type Running, start } from './processes.ts'
import { readResults, type Suite } from './suite.ts'

const READY_MS = 15_000
const RUN_MS = 120_000

/** `command` starts the server; `{port}` in it becomes a free port. `whole`: the line has all its scenarios. */
export async function judgeServer(line: Line, command: string, whole: boolean, suite: Suite, folder: string): Promise<Verdict[]> {
  const port = await freePort()
  const server = start(command.replaceAll('{port}', String(port)), [], {
    shell: true,
    env: { ...process.env, PORT: String(port) },
  })
  try {
    const unready = await waitForServer(server, port)
    if (unready) return line.scenarios.map(name => judge(name, undefined, [unready]))
    const troubles = await exercise(line, port, whole, suite, folder)
    if (server.ended() !== undefined)
      troubles.push({ id: 'server-ended', message: `the server ended during the run:\n${server.output()}` })
    const results = readResults(folder, 'server')
    return line.scenarios.map((name, index) => judge(name, results.get(name), index === 0 ? troubles : []))
  } finally {
    await server.stop()
  }
}

/** Runs the scenarios; what goes wrong beside their own checks is charged to the line's first scenario. */
async function exercise(line: Line, port: number, whole: boolean, suite: Suite, folder: string): Promise<Failure[]> {
  const proxy = line.pinned ? await openPinProxy(port, line.revision) : undefined
  const args = ['server', '--url', proxy?.url ?? `http://localhost:${port}/mcp`, '--spec-version', line.wire, '-o', folder]
  const troubles: Failure[] = []
  try {
    if (whole && !line.forced) await suite.run([...args, '--suite', 'all'], RUN_MS)
    else for (const name of line.scenarios) await suite.run([...args, '--scenario', name, '--force'], RUN_MS)
  } catch (error) {
    troubles.push({ id: 'suite', message: String(error) })
  }
  const complaint = proxy?.complaint()
  if (complaint) troubles.push({ id: 'pinned-version', message: complaint })
  proxy?.close()
  return troubles
}

async function waitForServer(server: Running, port: number): Promise<Failure | undefined> {
  const until = Date.now() + READY_MS
  while (!(await answers(port))) {
    if (server.ended() === undefined && Date.now() < until) await sleep(50)
    else
      return {
        id: 'server-start',
        message: `the server does not listen (${server.ended() ?? 'still starting'}): ${server.output()}`,
      }
  }
  return undefined
}
