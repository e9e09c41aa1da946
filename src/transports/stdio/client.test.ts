import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { type Heard, hear } from '../../../test/transports/contract.ts'
import { type Clock, realClock } from '../../core/clock.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { type StdioClientConnection, type StdioClientOptions, stdioClientConnection } from './client.ts'

const opened: StdioClientConnection[] = []

afterEach(async () => {
  for (const connection of opened.splice(0)) await connection.close()
})

/** A connection to a program in JavaScript, given as text. */
function run(program: string, more: Partial<StdioClientOptions> = {}): StdioClientConnection {
  const options = { command: process.execPath, args: ['-e', program], stderr: 'ignore' as const, closeMs: 2000, killMs: 2000 }
  const connection = stdioClientConnection({ ...options, ...more })
  opened.push(connection)
  return connection
}

const isClosed = ({ closes }: Heard) => closes.length > 0
const hasFrame = ({ frames }: Heard) => frames.length > 0

/** True when the process is gone, or only waits for somebody to take note that it is. */
function isGone(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z')
  } catch {
    return true
  }
}

async function gone(pid: number): Promise<void> {
  while (!isGone(pid)) await sleep(5)
}

/** Says `{"pid":…}` of a child of its own, which holds the same standard output and lives long, deaf to SIGTERM. */
const withGrandchild = `
const deaf = 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1000); process.stdout.write(JSON.stringify({ pid: process.pid }) + "\\\\n")'
require('node:child_process').spawn(process.execPath, ['-e', deaf], { stdio: ['ignore', 'inherit', 'ignore'] })
`

async function grandchildOf(heard: Heard): Promise<number> {
  await heard.until(hasFrame)
  return JSON.parse(heard.frames[0] ?? '').pid
}

describe('stdioClientConnection: speaking', () => {
  it('delivers what the command said before it ended, then tells of the end', async () => {
    const heard = await hear(run(`process.stdout.write('{"n":1}\\n{"n":2}\\n'); process.exitCode = 3`))
    await heard.until(isClosed)
    expect(heard.frames).toEqual(['{"n":1}', '{"n":2}'])
    expect(heard.closes).toMatchObject([{ kind: 'lost', message: expect.stringContaining('ended with exit code 3') }])
  })

  it('delivers all of it, also when it is more than one turn takes', async () => {
    const heard = await hear(run(`for (let n = 0; n < 20000; n++) process.stdout.write('{"n":' + n + '}\\n')`))
    await heard.until(isClosed)
    expect(heard.frames).toEqual(Array.from({ length: 20_000 }, (_, n) => `{"n":${n}}`))
  })

  it('ends the connection to a command that asks and does not read, before the answers pile up', async () => {
    const connection = run(`process.stdout.write('{"n":1}\\n'); setInterval(() => {}, 1000)`, {
      closeMs: 1,
      limits: { answerCeiling: 100_000 },
    })
    const heard = await hear(connection)
    await heard.until(hasFrame)
    // The pipe takes some, and the turn in which they are sent is not over.
    await Promise.resolve(connection.send('x'.repeat(1_000_000)))
    const sent = Array.from({ length: 2_000 }, () => Promise.resolve(connection.send('{"pong":true}')))
    const refused = (await Promise.allSettled(sent)).filter(({ status }) => status === 'rejected')
    expect(refused.length).toBeGreaterThan(1_000)
    await heard.until(isClosed)
    expect(heard.closes).toMatchObject([{ message: expect.stringContaining('answerCeiling') }])
  })

  it('refuses a line that is too long and takes the next one', async () => {
    const connection = run(`process.stdout.write('x'.repeat(5 * 1024 * 1024) + '\\n{"n":1}\\n')`, {
      limits: { frameBytes: 4_194_304 },
    })
    const heard = await hear(connection)
    await heard.until(hasFrame)
    expect(heard.faults).toMatchObject([{ kind: 'too-large' }])
    expect(heard.frames).toEqual(['{"n":1}'])
  })

  it('takes sixteen mebibytes in a line by default', async () => {
    const heard = await hear(run(`process.stdout.write('x'.repeat(16 * 1024 * 1024) + '\\n')`))
    await heard.until(hasFrame)
    expect(heard.frames[0]).toHaveLength(16 * 1024 * 1024)
  })

  it('takes frames to send as soon as start was called', async () => {
    const connection = run('process.stdin.pipe(process.stdout)')
    const hearing = hear(connection)
    expect(connection.send('{"early":1}')).toBeUndefined()
    const heard = await hearing
    await heard.until(hasFrame)
    expect(heard.frames).toEqual(['{"early":1}'])
  })

  it('refuses to send before it is started', async () => {
    await expect(run('').send('{}')).rejects.toMatchObject({ kind: 'refused' })
  })

  it('starts the command with few variables of ours, and those it is given', async () => {
    process.env.VIVARIUM_TEST_SECRET = 'do not tell'
    process.env.LC_TEST = 'C'
    const program = 'console.log(JSON.stringify(process.env)); setInterval(() => {}, 1000)'
    const heard = await hear(run(program, { env: { GIVEN: 'yes', HOME: '/elsewhere' }, closeMs: 1 }))
    await heard.until(hasFrame)
    const env = JSON.parse(heard.frames[0] ?? '')
    expect(env).toMatchObject({ GIVEN: 'yes', HOME: '/elsewhere', LC_TEST: 'C', PATH: process.env.PATH })
    expect(env).not.toHaveProperty('VIVARIUM_TEST_SECRET')
  })

  it('gives arguments to the command as they are, with no shell between', async () => {
    const args = ['-e', 'console.log(JSON.stringify(process.argv.slice(1)))', '$(echo hi)', 'a b', '; exit 9', '"']
    const heard = await hear(run('', { args }))
    await heard.until(hasFrame)
    expect(JSON.parse(heard.frames[0] ?? '')).toEqual(['$(echo hi)', 'a b', '; exit 9', '"'])
  })
})

describe('stdioClientConnection: standard error', () => {
  it('comes line by line to the function, apart from the protocol', async () => {
    const lines: string[] = []
    const program = `process.stderr.write('one\\ntw'); process.stdout.write('{"n":1}\\n'); setTimeout(() => process.stderr.write('o ä\\nthree'), 20)`
    const heard = await hear(run(program, { stderr: line => lines.push(line) }))
    await heard.until(isClosed)
    expect(lines).toEqual(['one', 'two ä', 'three'])
    expect(heard.frames).toEqual(['{"n":1}'])
  })

  it('goes to our own standard error by default', async () => {
    const module = JSON.stringify(new URL('./client.ts', import.meta.url).href)
    const program = `import(${module}).then(({ stdioClientConnection }) => {
      const connection = stdioClientConnection({ command: process.execPath, args: ['-e', 'console.error("from below")'] })
      return connection.start({ frame() {}, fault() {}, closed() {} })
    })`
    const lines: string[] = []
    const heard = await hear(run(program, { stderr: line => lines.push(line) }))
    await heard.until(isClosed)
    expect(lines).toEqual(['from below'])
  })

  it('is quoted when the command ends before its first answer, clipped, without the frames of a stack', async () => {
    const program = `process.stderr.write('a'.repeat(500) + '\\n'); throw new Error('no database')`
    const heard = await hear(run(program))
    await heard.until(isClosed)
    const message = heard.closes[0]?.message ?? ''
    expect(message).toContain('ended with exit code 1 before its first answer')
    expect(message).toContain('Error: no database')
    expect(message).toContain(`${'a'.repeat(79)}…`)
    expect(message).not.toMatch(/\| at |a{80}/)
  })

  it('is kept to its last twenty lines, of bounded length', async () => {
    const connection = run(
      `for (let n = 0; n < 100; n++) console.error('line ' + n); console.error('y'.repeat(5000)); console.error('z'.repeat(100000))`,
    )
    const heard = await hear(connection)
    await heard.until(isClosed)
    expect(connection.stderrTail).toHaveLength(20)
    expect(connection.stderrTail[17]).toBe('line 99')
    expect(connection.stderrTail[18]).toHaveLength(1000)
    expect(connection.stderrTail[19]).toBe('[a line of more than 65536 bytes]')
  })
})

describe('stdioClientConnection: starting and failing', () => {
  it('is refused, by the name of the command, if there is no such program', async () => {
    const connection = run('', { command: 'no-such-program-anywhere' })
    const closes: (Error | undefined)[] = []
    const started = connection.start({ frame() {}, fault() {}, closed: reason => closes.push(reason) })
    await expect(started).rejects.toMatchObject({ kind: 'refused', message: expect.stringContaining('no-such-program-anywhere') })
    await connection.close()
    expect(closes).toMatchObject([{ kind: 'refused' }])
    expect(await connection.exited).toEqual({})
  })

  it('says so if it is the folder that is missing', async () => {
    const starting = hear(run('', { cwd: '/no/such/folder' }))
    await expect(starting).rejects.toThrow('its folder /no/such/folder does not exist')
  })

  it('says so if it has no permission to execute the program', async () => {
    await expect(hear(run('', { command: new URL(import.meta.url).pathname }))).rejects.toThrow(
      'permission to execute it is denied',
    )
  })

  it('is refused if the command cannot be started at all', async () => {
    const closes: (Error | undefined)[] = []
    const connection = run('', { command: 'nul\0byte' })
    const started = connection.start({ frame() {}, fault() {}, closed: reason => closes.push(reason) })
    await expect(started).rejects.toBeInstanceOf(ConnectionError)
    expect(closes).toMatchObject([{ kind: 'refused' }])
  })

  it('names the signal that ended the command', async () => {
    const heard = await hear(run(`process.kill(process.pid, 'SIGKILL')`))
    await heard.until(isClosed)
    expect(heard.closes[0]?.message).toContain('was ended by SIGKILL')
  })

  it('ends the command when it closes its output but stays', async () => {
    const connection = run(`require('node:fs').closeSync(1); setInterval(() => {}, 1000)`, { closeMs: 20 })
    const heard = await hear(connection)
    await heard.until(isClosed)
    expect(heard.closes).toMatchObject([{ kind: 'lost', message: expect.stringContaining('was ended by SIGTERM') }])
  })

  it('cuts and ends a command that reads too slowly', async () => {
    const connection = run('setInterval(() => {}, 1000)', { limits: { stallMs: 50 }, closeMs: 20 })
    const heard = await hear(connection)
    void connection.send('x'.repeat(2_000_000))
    await heard.until(isClosed)
    expect(heard.closes[0]?.message).toContain('reads too slowly')
    expect(await connection.exited).toEqual({ signal: 'SIGTERM' })
  })
})

describe('stdioClientConnection: ending', () => {
  it('lets the command end by itself when its input closes', async () => {
    const connection = run(`process.stdin.resume().on('end', () => { process.exitCode = 7 })`, { closeMs: 10_000 })
    const heard = await hear(connection)
    await connection.close()
    expect(await connection.exited).toEqual({ code: 7 })
    expect(heard.closes).toEqual([undefined])
  })

  it.each([
    ['that never answered gets no time for what it never did', '', 300],
    ['that only logged so far neither', `console.log('Listening on port 3000');`, 300],
    ['that has answered gets its two seconds', `console.log('{}');`, 2_000],
  ])('a command %s', async (_name, says, closeMs) => {
    const killMs = 60_000
    const waits: number[] = []
    const clock: Clock = {
      now: () => realClock.now(),
      setTimeout: (fn, ms, background) => {
        waits.push(ms)
        // It is given its time to end by SIGTERM: only the wait before that is short.
        return realClock.setTimeout(fn, ms === killMs ? ms : Math.min(ms, 20), background)
      },
    }
    const args = ['-e', `${says} setInterval(() => {}, 1000)`]
    const connection = stdioClientConnection({ command: process.execPath, args, stderr: 'ignore', killMs, clock })
    opened.push(connection)
    const heard = await hear(connection)
    if (says !== '') await heard.until(hasFrame)
    waits.length = 0
    await connection.close()
    expect(waits.filter(ms => ms === 300 || ms === 2_000).at(-1)).toBe(closeMs)
    expect(await connection.exited).toEqual({ signal: 'SIGTERM' })
  })

  it('sends SIGTERM to a command that stays', async () => {
    const program = `process.on('SIGTERM', () => process.exit(15)); setInterval(() => {}, 1000); console.log('{}')`
    const connection = run(program, { closeMs: 20 })
    await (await hear(connection)).until(hasFrame)
    await connection.close()
    expect(await connection.exited).toEqual({ code: 15 })
  })

  it('ends the whole group by SIGKILL when neither the command nor its child listens', async () => {
    const program = `process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); ${withGrandchild}`
    const connection = run(program, { closeMs: 20, killMs: 20 })
    const grandchild = await grandchildOf(await hear(connection))
    expect(isGone(grandchild)).toBe(false)
    await connection.close()
    expect(await connection.exited).toEqual({ signal: 'SIGKILL' })
    await gone(grandchild)
  })

  it('ends what a command leaves behind that has ended by itself, and tells of the end', async () => {
    const program = `${withGrandchild}; process.stdin.once('data', () => process.exit(0))`
    const connection = run(program, { killMs: 20 })
    const heard = await hear(connection)
    const grandchild = await grandchildOf(heard)
    void connection.send('{"go":1}')
    await heard.until(isClosed)
    expect(heard.closes[0]?.message).toContain('ended with exit code 0')
    await gone(grandchild)
  })

  it('ends what a command leaves behind that ends when it is asked to', async () => {
    const program = `${withGrandchild}; process.stdin.resume().on('end', () => process.exit(0))`
    const connection = run(program, { killMs: 20 })
    const grandchild = await grandchildOf(await hear(connection))
    await connection.close()
    expect(await connection.exited).toEqual({ code: 0 })
    await gone(grandchild)
  })

  it('leaves no orphan when our own process exits without closing', async () => {
    const module = JSON.stringify(new URL('./client.ts', import.meta.url).href)
    const inner = `process.on('SIGTERM', () => {}); process.stdin.resume(); setInterval(() => {}, 1000); ${withGrandchild}`
    const program = `import(${module}).then(async ({ stdioClientConnection }) => {
      const connection = stdioClientConnection({ command: process.execPath, args: ['-e', ${JSON.stringify(inner)}] })
      await connection.start({ fault() {}, closed() {}, frame(text) {
        process.stdout.write(JSON.stringify({ pid: JSON.parse(text).pid, child: connection.pid }) + '\\n', () => process.exit(0))
      } })
    })`
    const heard = await hear(run(program))
    await heard.until(hasFrame)
    const { pid, child } = JSON.parse(heard.frames[0] ?? '')
    await Promise.all([gone(pid), gone(child)])
  })

  it('closes without having been started, and then cannot be', async () => {
    const connection = run('')
    await connection.close()
    await expect(hear(connection)).rejects.toMatchObject({ kind: 'aborted' })
    expect(await connection.exited).toEqual({})
  })
})
