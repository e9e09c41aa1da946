/** A real process behind real pipes: bad input never kills it, and its end is clean (item 3, security S01–S13). */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { enveloped, errorOf, type Frame, helloParams, resultOf } from './wire.ts'

interface Child {
  say(text: string | Buffer): void
  ask(method: string, params?: Frame, id?: string | number): Promise<Frame>
  /** The next line that came. */
  line(): Promise<Frame>
  /** Closes its input; gives how it ended. */
  end(): Promise<{ code: number | null; signal: string | null; stderr: string }>
  readonly ended: Promise<{ code: number | null; signal: string | null; stderr: string }>
}

const running = new Set<ChildProcessWithoutNullStreams>()
afterEach(() => {
  for (const child of running) child.kill('SIGKILL')
})

function start(): Child {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', join(import.meta.dirname, 'stdio-child.ts')])
  running.add(child)
  const lines: Frame[] = []
  const wake: (() => void)[] = []
  let rest = ''
  let stderr = ''
  let nextId = 1
  child.stderr.on('data', chunk => {
    stderr += chunk
  })
  child.stdin.on('error', () => {})
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    rest += chunk
    const whole = rest.split('\n')
    rest = whole.pop() ?? ''
    for (const line of whole) lines.push(JSON.parse(line))
    for (const fn of wake.splice(0)) fn()
  })
  const ended = new Promise<{ code: number | null; signal: string | null; stderr: string }>(resolve => {
    child.on('close', (code, signal) => {
      running.delete(child)
      for (const fn of wake.splice(0)) fn()
      resolve({ code, signal, stderr })
    })
  })
  const take = async (fits: (frame: Frame) => boolean): Promise<Frame> => {
    for (;;) {
      const at = lines.findIndex(fits)
      if (at !== -1) return lines.splice(at, 1)[0] as Frame
      if (child.exitCode !== null) throw new Error(`The process has ended with ${child.exitCode}: ${stderr}`)
      await new Promise<void>(resolve => wake.push(resolve))
    }
  }
  return {
    ended,
    say: text => child.stdin.write(text),
    line: () => take(() => true),
    ask: (method, params = {}, id = nextId++) => {
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
      return take(frame => frame['id'] === id && frame['method'] === undefined)
    },
    end: () => {
      child.stdin.end()
      return ended
    },
  }
}

const E = '2026-07-28'

describe('a process that hears nonsense', () => {
  it('answers each line of it, and the next good one too', async () => {
    const child = start()
    const nonsense: readonly [string | Buffer, number][] = [
      ['{"jsonrpc":\n', -32700],
      ['nonsense\n', -32700],
      ['\u0000\n', -32700],
      ['7\n', -32600],
      ['{}\n', -32600],
      ['{"jsonrpc":"2.0","id":null,"method":"ping"}\n', -32600],
      [Buffer.from([0x22, 0xc3, 0x28, 0x22, 0x0a]), -32700],
      [`"${'x'.repeat(200_000)}"\n`, -32700],
      [`${'['.repeat(50_000)}\n`, -32600],
      [`[${Array.from({ length: 101 }, () => '{}').join(',')}]\n`, -32600],
    ]
    for (const [text, code] of nonsense) {
      child.say(text)
      expect([String(text).slice(0, 20), errorOf(await child.line()).code]).toEqual([String(text).slice(0, 20), code])
    }
    expect(resultOf(await child.ask('tools/list', enveloped(E)))['resultType']).toBe('complete')
    expect(await child.end()).toMatchObject({ code: 0, signal: null })
  })

  it('takes lines that come byte by byte, several at once, with CRLF, and empty ones between', async () => {
    const child = start()
    const line = (id: number): string =>
      JSON.stringify({
        jsonrpc: '2.0',
        id,
        method: 'tools/call',
        params: enveloped(E, { name: 'echo', arguments: { text: 'ä€𝄞' } }),
      })
    for (const byte of Buffer.from(`${line(1)}\n`)) child.say(Buffer.from([byte]))
    child.say(`\n\r\n  \n${line(2)}\r\n${line(3)}\n${line(4)}`)
    child.say('\n')
    for (let count = 0; count < 4; count++) {
      expect((resultOf(await child.line())['content'] as Frame[])[0]?.['text']).toBe('ä€𝄞')
    }
    expect((await child.end()).code).toBe(0)
  })

  it('survives handlers that fail, and questions that nobody awaits when the client goes away', async () => {
    const child = start()
    await child.ask('initialize', helloParams('2025-11-25', { elicitation: {} }))
    child.say(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`)
    expect(resultOf(await child.ask('tools/call', { name: 'broken' }))['isError']).toBe(true)
    await child.ask('tools/call', { name: 'loose' })
    const { code, stderr } = await child.end()
    expect(code).toBe(0)
    expect(stderr).not.toMatch(/unhandled|suspended|rejection/i)
  })

  it('ends when its input ends in the middle of a line', async () => {
    const child = start()
    await child.ask('tools/list', enveloped(E))
    child.say('{"jsonrpc":"2.0","id":1,')
    expect((await child.end()).code).toBe(0)
  })
})

describe('the goodbye of the dialect (§3.1)', () => {
  const hello = { mcpVersion: '2025-06-18', clientCapabilities: {} }

  it('after shutdown, exit ends the process with 0', async () => {
    const child = start()
    await child.ask('initialize', hello)
    expect((await child.ask('shutdown'))['result']).toBe(null)
    child.say('{"jsonrpc":"2.0","method":"exit"}\n')
    expect((await child.ended).code).toBe(0)
  })

  it('without it, with 1', async () => {
    const child = start()
    await child.ask('initialize', hello)
    child.say('{"jsonrpc":"2.0","method":"exit"}\n')
    expect((await child.ended).code).toBe(1)
  })
})
