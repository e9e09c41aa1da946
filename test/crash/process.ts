/** A life as the harness sees it: a process that was started, says where it listens, and is killed. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import type { LifeSpec } from './life.ts'

export interface Life {
  /** When its process was started, by the clock that only goes forward. */
  readonly startedAt: number
  /** Where it listens; undefined where it died before that. */
  readonly url: Promise<string | undefined>
  /** Resolves when it is dead; with what it said last where it ended in another way than by SIGKILL or by being told to. */
  readonly over: Promise<string | undefined>
  readonly dead: boolean
  /** SIGKILL, now. */
  kill(): void
  /** Tells it to close what it has and to end. */
  end(): Promise<void>
}

const program = join(import.meta.dirname, 'life.ts')
const keptText = 4000

export function startLife(spec: LifeSpec): Life {
  const startedAt = performance.now()
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program, JSON.stringify(spec)], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let said = ''
  let dead = false
  let told = false
  child.stdin.on('error', () => {})
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-keptText)
  })
  const url = new Promise<string | undefined>(resolve => {
    let line = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      line += text
      if (line.includes('\n')) resolve(line.trim())
    })
    child.once('close', () => resolve(undefined))
  })
  const over = new Promise<string | undefined>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      dead = true
      const expected = signal === 'SIGKILL' || (told && code === 0)
      resolve(expected && said === '' ? undefined : `it ended by ${signal ?? code}. ${said}`)
    })
  })
  return {
    startedAt,
    url,
    over,
    get dead() {
      return dead
    },
    kill: () => void child.kill('SIGKILL'),
    end: async () => {
      told = true
      child.stdin.end()
      await over
    },
  }
}
