/** Signing in from a terminal, with a stand-in for the system's browser; after that without one. */
import { execFile } from 'node:child_process'
import { chmodSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startWorld } from '../auth/world.ts'
import { trial } from './trial.ts'

const bin = join(import.meta.dirname, '../../bin/vivarium.mjs')
const hasTerminal = process.platform === 'linux' && existsSync('/usr/bin/script')

/** Opens the page, and follows it back. */
const browser = `#!${process.execPath}
await fetch(process.argv[2]).then(response => response.text())
`

test.skipIf(!hasTerminal)(
  'in a terminal the browser signs in, and the tokens serve later calls',
  async () => {
    const world = await startWorld()
    const it = await trial({ 'bin/xdg-open': browser, 'bin/package.json': '{"type":"module"}' })
    chmodSync(join(it.folder, 'bin/xdg-open'), 0o755)
    const env = { PATH: `${join(it.folder, 'bin')}:${process.env['PATH']}`, TERM: 'xterm', NO_COLOR: '1' }

    const alone = await it.run(['call', world.url, 'echo'], { env })
    expect([alone.code, alone.err]).toEqual([3, expect.stringContaining('signing in needs a terminal')])
    expect(world.at('/register')).toEqual([])

    const script = `'${process.execPath}' '${bin}' call '${world.url}' echo`
    const shown = await new Promise<string>((resolve, reject) => {
      execFile(
        '/usr/bin/script',
        ['-qec', script, '/dev/null'],
        { cwd: it.folder, env: { ...env, HOME: it.folder }, timeout: 25_000 },
        (error, out) => (error === null ? resolve(out) : reject(new Error(`${error.message}\n${out}`))),
      )
    })
    expect(shown).toContain('hello')
    expect(world.at('/authorize')).toHaveLength(1)

    const later = await it.run(['call', world.url, 'echo'], { env })
    expect([later.code, later.out]).toEqual([0, 'hello\n'])
    expect(world.at('/authorize')).toHaveLength(1)
  },
  60_000,
)
