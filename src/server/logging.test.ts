import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { connectInMemory } from '../testing/index.ts'
import { createLog, createServer, type Level, type ServerOptions } from './index.ts'

async function records(level: Level, options: Partial<ServerOptions> = {}): Promise<Record<string, unknown>[]> {
  const lines: string[] = []
  const log = createLog({ level, format: 'json', write: line => lines.push(line) })
  const server = createServer({ name: 'a', version: '1', log, ...options })
  server.tool('works', {}, () => 'x')
  server.tool('breaks', {}, () => {
    throw new Error('on the way')
  })
  const mcp = await connectInMemory(server, { revision: '2025-11-25' })
  await mcp.callTool('works')
  await mcp.callTool('breaks')
  await mcp.close()
  return lines.map(line => JSON.parse(line))
}

describe('the log of a server', () => {
  it('tells of every call at debug', async () => {
    const calls = (await records('debug')).filter(({ event }) => event === 'call')
    const common = {
      level: 'debug',
      server: 'a',
      method: 'tools/call',
      revision: '2025-11-25',
      carrier: 'memory',
      ms: expect.any(Number),
    }
    expect(calls).toEqual(expect.arrayContaining([expect.objectContaining({ ...common, name: 'works', failed: false })]))
  })

  it('tells mistakes of the author, with the frames of the stack, at error', async () => {
    expect(await records('error')).toMatchObject([
      {
        event: 'tool-failed',
        tool: 'breaks',
        error: { message: 'on the way', stack: expect.arrayContaining([expect.stringContaining('logging.test.ts')]) },
      },
    ])
  })

  it('and the raw trace are told the same', async () => {
    const raw: unknown[] = []
    const written = await records('error', { onTrace: (event, detail) => raw.push([event, detail]) })
    const told = { tool: 'breaks', error: new Error('on the way'), correlationId: expect.any(String) }
    expect(raw).toContainEqual(['tool-failed', told])
    expect(written).toHaveLength(1)
  })

  it('says so when VIVARIUM_LOG names no level, and goes on', async () => {
    const program = `import { createServer } from ${JSON.stringify(join(import.meta.dirname, 'index.ts'))}
      createServer({ name: 'a', version: '1' })`
    const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program]
    const { stderr, stdout } = await promisify(execFile)(process.execPath, args, {
      env: { ...process.env, VIVARIUM_LOG: 'loud' },
    })
    expect(stderr).toContain('log-level-unknown VIVARIUM_LOG=loud')
    expect(stdout).toBe('')
  })
})
