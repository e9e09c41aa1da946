/** The suite's command line: what it lists, one run of it, and the results that it writes. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import type { Check } from './judge.ts'
import type { Scenario, Side } from './plan.ts'
import { finish, start } from './processes.ts'

export interface Suite {
  list(side: Side): Scenario[]
  /** One run; resolves with its words when it has ended, or throws when it takes longer than the limit. */
  run(args: readonly string[], limitMs: number): Promise<{ status: number | string; output: string }>
}

export function openSuite(program: string): Suite {
  return {
    list(side) {
      const text = execFileSync(process.execPath, [program, 'list', `--${side}`], { encoding: 'utf8' })
      return [...text.matchAll(/^ {2}- (\S+) \[(.*)\]/gm)].map(([, name = '', tags = '']) => ({
        name,
        revisions: tags.split(',').filter(tag => /^\d{4}-/.test(tag)),
      }))
    },
    async run(args, limitMs) {
      const child = start(process.execPath, [program, ...args], { env: { ...process.env, NO_COLOR: '1' } })
      const status = await finish(child, limitMs)
      if (status === undefined) throw new Error(`the suite took longer than ${limitMs / 1000} s`)
      return { status, output: child.output() }
    },
  }
}

/** Every checks.json below a folder, by scenario (`auth/…` lies one level deeper; servers' folders carry a prefix). */
export function readResults(folder: string, side: Side): Map<string, Check[]> {
  const found = new Map<string, Check[]>()
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (basename(path) !== 'checks.json') continue
    const name = relative(folder, join(folder, path, '..'))
      .replaceAll('\\', '/')
      .replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, '')
    found.set(
      side === 'server' ? name.replace(/^server-/, '') : name,
      JSON.parse(readFileSync(join(folder, path), 'utf8')) as Check[],
    )
  }
  return found
}
