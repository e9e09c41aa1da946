/** The tracker in a process of its own, so that it can be killed and started again. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

export interface Tracker {
  readonly url: string
  /** The next line that it prints. */
  readonly next: () => Promise<string>
  /** By SIGKILL: it can do nothing about it. */
  readonly kill: () => Promise<void>
}

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

const env = { ...process.env, VIVARIUM_SECRET: randomBytes(32).toString('hex') }

/** `stuckIn` names a tool in which it gets stuck. */
export async function startTracker(folder: string, stuckIn?: string): Promise<Tracker> {
  const script = join(import.meta.dirname, 'server.ts')
  const args = ['--disable-warning=ExperimentalWarning', script, folder, ...(stuckIn === undefined ? [] : [stuckIn])]
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  running.add(child)
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const next = async (): Promise<string> => String((await lines.next()).value)
  const kill = async (): Promise<void> => {
    running.delete(child)
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  return { url: await next(), next, kill }
}
