import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { authorizationOf } from './connecting.ts'
import type { Io } from './io.ts'

test('a sign-in is offered by https and on this machine; by plain http elsewhere a server is spoken with as nobody', async () => {
  const home = await mkdtemp(join(tmpdir(), 'vivarium-credentials-'))
  onTestFinished(() => rm(home, { recursive: true, force: true }))
  const { stdin: input, stdout: output, stderr: errors } = process
  const env = { XDG_DATA_HOME: home, XDG_CONFIG_HOME: home }
  const io: Io = { input, output, errors, env, interactive: false, colour: false, signal: AbortSignal.timeout(1) }
  const offered = (address: string): boolean => authorizationOf(address, {}, io) !== undefined
  expect(['https://mcp.example/mcp', 'http://127.0.0.1:1/mcp', 'http://mcp.example/mcp'].map(offered)).toEqual([
    true,
    true,
    false,
  ])
  expect(authorizationOf('https://mcp.example/mcp', { Authorization: 'Bearer x' }, io)).toBeUndefined()
})
