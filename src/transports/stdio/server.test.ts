import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'

const children: ChildProcessWithoutNullStreams[] = []

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

/** Starts a program that serves on its standard streams; `connection` is there for it, and `run` is its text. */
function serve(run: string, options = '{}') {
  const module = JSON.stringify(new URL('./server.ts', import.meta.url).href)
  const program = `import { stdioServerConnection } from ${module}\nconst connection = stdioServerConnection(${options})\n${run}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program])
  children.push(child)
  const said = { stdout: '', stderr: '' }
  child.stdout.on('data', text => (said.stdout += text))
  child.stderr.on('data', text => (said.stderr += text))
  return { child, said }
}

const echo = `connection.start({ frame: text => connection.send(text), fault: fault => connection.send(JSON.stringify(fault)), closed() {} })\n`

/** Resolves when what was said holds the text. */
async function says(child: ChildProcessWithoutNullStreams, said: { stdout: string }, text: string): Promise<void> {
  while (!said.stdout.includes(text)) await once(child.stdout, 'data')
}

describe('stdioServerConnection', () => {
  it('answers on standard output and ends, with the process, when its input ends', async () => {
    const { child, said } = serve(echo)
    child.stdin.end('{"n":1}\n{"n":2}\n')
    const [code] = await once(child, 'close')
    expect([code, said.stdout, said.stderr]).toEqual([0, '{"n":1}\n{"n":2}\n', ''])
  })

  it('sends what others write to standard output to standard error, so that the protocol stays whole', async () => {
    const stray = `console.log('log'); console.info('info'); console.debug('debug'); console.table([1]); process.stdout.write('write\\n')\n`
    const { child, said } = serve(`${stray}${echo}`)
    child.stdin.end('{"n":1}\n')
    await once(child, 'close')
    expect(said.stdout).toBe('{"n":1}\n')
    for (const word of ['log', 'info', 'debug', 'index', 'write']) expect(said.stderr).toContain(word)
  })

  it('gives standard output back when it is closed', async () => {
    const { child, said } = serve(`${echo}await connection.close(); console.log('mine again')`)
    const [code] = await once(child, 'close')
    expect([code, said.stdout, said.stderr]).toEqual([0, 'mine again\n', ''])
  })

  it('sends everything before it closes, however much it is', async () => {
    const { child, said } = serve(`${echo}connection.send('x'.repeat(3_000_000)); await connection.close(); process.exit(0)`)
    await once(child, 'close')
    expect(said.stdout).toHaveLength(3_000_001)
  })

  it('refuses a line of five mebibytes and serves the next one', async () => {
    const { child, said } = serve(echo)
    child.stdin.write(`{"text":"${'x'.repeat(5 * 1024 * 1024)}"}\n{"n":1}\n`)
    await says(child, said, '{"n":1}')
    const [fault, frame] = said.stdout.split('\n')
    expect(JSON.parse(fault ?? '')).toMatchObject({ kind: 'too-large', message: expect.stringContaining('4194304 bytes') })
    expect(frame).toBe('{"n":1}')
  })

  it('refuses only the line that is not UTF-8', async () => {
    const { child, said } = serve(echo)
    child.stdin.write(Buffer.concat([Buffer.from('{"a":"ä"}\n{"b":"'), Buffer.of(0xc3, 0x28), Buffer.from('"}\n{"c":1}\n')]))
    await says(child, said, '{"c":1}')
    expect(said.stdout.split('\n').map(line => line.slice(0, 20))).toEqual(['{"a":"ä"}', '{"kind":"not-utf8","', '{"c":1}', ''])
  })

  it('ends quietly when nobody reads its output any more', async () => {
    const { child, said } = serve(echo, '{ lingerMs: 10 }')
    child.stdin.on('error', () => {})
    child.stdout.destroy()
    child.stdin.write('{"n":1}\n')
    const [code] = await once(child, 'close')
    expect([code, said.stderr]).toEqual([0, ''])
  })

  it('keeps its memory small towards a client that floods it and never reads, and cuts it', async () => {
    const flooded = `
      const answer = JSON.stringify({ text: 'y'.repeat(1000) })
      let before = 0
      connection.start({
        frame() { before ||= process.memoryUsage.rss(); connection.send(answer) },
        fault() {},
        closed(reason) { process.stderr.write(JSON.stringify({ grown: process.memoryUsage.rss() - before, reason: reason?.message })) },
      })`
    const { child, said } = serve(flooded, '{ limits: { stallMs: 1000 } }')
    child.stdin.on('error', () => {})
    child.stdout.removeAllListeners('data').pause()
    const flood = '{"n":1}\n'.repeat(100_000)
    for (let at = 0; at < 20; at++) child.stdin.write(flood)
    while (!said.stderr.includes('}')) await once(child.stderr, 'data')
    const { grown, reason } = JSON.parse(said.stderr)
    expect(reason).toContain('reads too slowly')
    expect(grown).toBeLessThan(16 * 1024 * 1024)
  })
})
