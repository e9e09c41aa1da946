/** Signing in for a gateway, from a terminal and with a stand-in for the system's browser; the gateway itself has neither. */
import { execFile } from 'node:child_process'
import { chmodSync, existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { connect } from '../../src/client/index.ts'
import { secret, startWorld } from '../auth/world.ts'
import { trial } from './trial.ts'

const bin = join(import.meta.dirname, '../../bin/vivarium.mjs')
const hasTerminal = process.platform === 'linux' && existsSync('/usr/bin/script')

/** Opens the page, and follows it back. */
const browser = `#!${process.execPath}
await fetch(process.argv[2]).then(response => response.text())
`

test.skipIf(!hasTerminal)(
  '--check names the sign-in that is missing, --sign-in does it, and the gateway serves with the tokens that it brought',
  async () => {
    const world = await startWorld()
    const it = await trial({
      'bin/xdg-open': browser,
      'bin/package.json': '{"type":"module"}',
      'gateway.yaml': `servers:\n  notes: { url: '${world.url}', auth: sign-in }\n`,
    })
    chmodSync(join(it.folder, 'bin/xdg-open'), 0o755)
    const env = { PATH: `${join(it.folder, 'bin')}:${process.env['PATH']}`, TERM: 'xterm', NO_COLOR: '1' }

    const before = await it.run(['gateway', 'gateway.yaml', '--check'], { env })
    expect([before.code, before.err]).toEqual([3, ''])
    expect(before.out).toContain('The server "notes" needs a sign-in. Sign in: vivarium gateway gateway.yaml --sign-in notes')
    const alone = await it.run(['gateway', 'gateway.yaml', '--sign-in', 'notes'], { env })
    expect([alone.code, alone.err]).toEqual([3, expect.stringContaining('Signing in needs a terminal')])
    expect(world.at('/register')).toEqual([])

    const shown = await new Promise<string>((resolve, reject) => {
      execFile(
        '/usr/bin/script',
        ['-qec', `'${process.execPath}' '${bin}' gateway gateway.yaml --sign-in notes`, '/dev/null'],
        { cwd: it.folder, env: { ...env, HOME: it.folder }, timeout: 25_000 },
        (error, out) => (error === null ? resolve(out) : reject(new Error(`${error.message}\n${out}`))),
      )
    })
    const file = join(it.folder, '.local/share/vivarium/tokens')
    expect(shown).toContain(`Signed in at ${world.url}`)
    expect(shown).not.toContain(secret)
    expect(statSync(file).mode & 0o777).toBe(0o600)

    const mcp = await connect({
      command: process.execPath,
      args: [bin, 'gateway', 'gateway.yaml', '--stdio'],
      cwd: it.folder,
      env: { ...env, HOME: it.folder },
    })
    await expect.poll(async () => (await mcp.callTool('echo', {}).catch(() => ({ text: '' }))).text).toBe('hello')
    world.tokens.clear()
    const revoked = await mcp.callTool('echo', {})
    expect(revoked).toMatchObject({
      isError: true,
      text: expect.stringContaining('The operator of the gateway must sign in there (--sign-in)'),
    })
    // Where its files lie is not for callers.
    expect(revoked.text).not.toContain('gateway.yaml')
    await mcp.close()
    expect(world.at('/authorize')).toHaveLength(1)
  },
  60_000,
)

test('--sign-in tells of a server that is not there, or for which nobody signs in', async () => {
  const it = await trial({ 'gateway.yaml': "servers:\n  notes: { url: 'https://mcp.example/mcp' }\n" })
  const wrong = await it.run(['gateway', 'gateway.yaml', '--sign-in', 'nots'])
  expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining('Its servers are notes')])
  const plain = await it.run(['gateway', 'gateway.yaml', '--sign-in', 'notes'])
  expect([plain.code, plain.err]).toEqual([1, expect.stringContaining('auth: sign-in')])
})
