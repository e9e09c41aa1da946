/** A server of the example in a process of its own, so that it can be killed. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

export interface Running {
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

export async function start(script: string, ...args: string[]): Promise<Running> {
  const file = join(import.meta.dirname, script)
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', file, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
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
