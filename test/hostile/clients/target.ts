/** Starting the server under attack, looking at it from outside, and ending it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Facts, TargetSettings } from './target-process.ts'

export interface Target {
  readonly pid: number
  /** 0 on stdio. */
  readonly port: number
  readonly child: ChildProcess
  /** The end of what it wrote on standard error. */
  readonly stderr: () => string
  /** Whether the process still runs. */
  readonly alive: () => boolean
  /** Asks it how it fares, and starts to count anew. `collect` has it collect its garbage first, `shrink` give back its pages too. */
  facts(collect?: boolean, shrink?: boolean): Promise<Facts>
  /** Resident memory in bytes. */
  resident(): number
  stop(): Promise<void>
}

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

export async function startTarget(settings: TargetSettings): Promise<Target> {
  const { NODE_OPTIONS: _dropped, ...env } = process.env
  const child = spawn(
    process.execPath,
    ['--expose-gc', '--no-warnings', join(import.meta.dirname, 'target-process.ts'), JSON.stringify(settings)],
    { stdio: ['pipe', 'pipe', 'pipe', 'ipc'], env: { ...env, NODE_ENV: 'production' } },
  )
  running.add(child)
  const exited = once(child, 'exit').then(() => void running.delete(child))
  let stderr = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-200_000)
  })
  child.stdin?.on('error', () => {})
  const port = settings.carrier === 'stdio' ? 0 : await announced(child, exited, () => stderr)
  const facts = asking(child)
  return {
    pid: child.pid ?? 0,
    port,
    child,
    stderr: () => stderr,
    alive: () => child.exitCode === null && child.signalCode === null,
    facts,
    resident: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'latin1'))?.[1] ?? 0) * 1024,
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      await exited
    },
  }
}

async function announced(child: ChildProcess, exited: Promise<void>, stderr: () => string): Promise<number> {
  const first = once(child, 'message').then(([message]) => (message as { port: number }).port)
  const port = await Promise.race([first, exited.then(() => undefined)])
  if (port === undefined) throw new Error(`The server under attack did not start: ${stderr()}`)
  return port
}

function asking(child: ChildProcess): Target['facts'] {
  let next = 1
  const waiting = new Map<number, (facts: Facts) => void>()
  child.on('message', (message: Facts & { id?: number }) => {
    const take = waiting.get(message.id ?? 0)
    waiting.delete(message.id ?? 0)
    take?.(message)
  })
  return (collect = false, shrink = false) =>
    new Promise((done, fail) => {
      const id = next++
      const late = setTimeout(() => fail(new Error('the server says nothing any more: its event loop stands still')), 20_000)
      waiting.set(id, facts => {
        clearTimeout(late)
        done(facts)
      })
      child.send({ id, collect, shrink }, error => {
        if (error !== null) fail(new Error('the server has ended'))
      })
    })
}
