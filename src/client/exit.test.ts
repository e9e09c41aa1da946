import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const at = (path: string) => JSON.stringify(join(import.meta.dirname, path))

/** Runs a program whose server answers the handshake and then falls silent; gives its exit code and what it printed. */
async function run(then: string): Promise<{ code: number; stdout: string }> {
  const program = `
    import { connect } from ${at('./index.ts')}
    import { createServer } from ${at('../server/index.ts')}
    import { memoryPair } from ${at('../transports/memory.ts')}
    const server = createServer({ name: 'silent', version: '1.0.0' })
    server.tool('silent', {}, () => new Promise(() => {}))
    server.tool('quick', {}, () => 'here')
    const [theirs, ours] = memoryPair()
    server.acceptor.accept(theirs)
    const mcp = await connect(ours, { revisions: ['2025-11-25'] })
    ${then}`
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module-typescript', '--eval', program]
  try {
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 20_000 })
    return { code: 0, stdout }
  } catch (error) {
    const { code, stdout } = error as { code: number; stdout: string }
    return { code, stdout }
  }
}

describe('a program with nothing left but a call', () => {
  it('lives until the call has failed by its deadline', async () => {
    const { code, stdout } = await run(`
      const error = await mcp.callTool('silent', {}, { timeout: 600 }).catch(error => error)
      console.log(error.kind)`)
    expect([code, stdout]).toEqual([0, 'timeout\n'])
  })

  it('ends when its calls are answered, although the client is still open', async () => {
    const { code, stdout } = await run(`console.log((await mcp.callTool('quick', {}, { timeout: 60_000 })).text)`)
    expect([code, stdout]).toEqual([0, 'here\n'])
  })
})
