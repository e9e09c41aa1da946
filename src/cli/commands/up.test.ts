/** The terminal as a user has it: the built command, the reference servers as its children, and a store that outlives both. */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createHost } from '../../host/create.ts'
import { replay } from '../../host/recorder/record.ts'

const root = join(import.meta.dirname, '../../..')

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'vivarium-up-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

/** Started in a folder of its own, with its input and output as pipes. */
function start(cwd: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
  const config = ['--config', join(root, 'examples/host/mcp.json')]
  const child = spawn(process.execPath, [join(root, 'dist/cli/main.js'), 'up', ...config, ...args], {
    cwd,
    env: { PATH: process.env['PATH'] ?? '', HOME: cwd, ...env },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let [out, err, read] = ['', '', 0]
  const ended = new Promise<number | null>(resolve => child.on('close', resolve))
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text
  })
  return {
    ended,
    child,
    output: () => out,
    errors: () => err,
    /** Types a line, and gives what came from there up to the words. */
    say: async (line: string | undefined, until: string | RegExp): Promise<string> => {
      if (line !== undefined) child.stdin.write(`${line}\n`)
      await expect.poll(() => out.slice(read)).toMatch(until)
      const said = out.slice(read)
      read = out.length
      return said
    },
    finish: () => {
      child.stdin.end()
      return ended
    },
  }
}

test('without a word to read it starts, says what it is, and ends', { timeout: 60_000 }, async () => {
  const terminal = start(await folder())
  expect(await terminal.finish()).toBe(0)
  expect(terminal.output()).toMatch(/^Vivarium, a live MCP host/)
  for (const name of ['memory', 'notes', 'files', 'calendar', 'webhook', 'redactor'])
    expect(terminal.output()).toMatch(new RegExp(`● ${name} +MCP Live 0\\.2`))
  expect(terminal.output()).toContain('offline-assistant')
  expect(terminal.errors()).toBe('')
})

test('a session: it remembers, is woken, asks, explains, counts and undoes; the next start finds all of it', {
  timeout: 120_000,
}, async () => {
  const cwd = await folder()
  const first = start(cwd)
  await first.say(undefined, /Ctrl-D ends/)
  expect(await first.say('Remember that Kim likes green tea', /turn 1 ·/)).toMatch(/→ memory\.remember .*\n ✓ memory\.remember/)
  const answer = await first.say('What does Kim like?', /turn 2 ·/)
  expect(answer).toMatch(/\+ memory\.retrieval added \d+ tokens before your message: .*Kim likes green tea/)
  expect(answer).toContain('│ From the available information: - Kim likes green tea')
  await first.say('Remember that my address is kim@example.com', /turn 3 ·/)
  const redacted = await first.say('What is my address?', /turn 4 ·/)
  expect(redacted).toMatch(/address is \[redacted-email\]/)
  expect(redacted).toContain('redactor.answers of redactor changed the answer before it was shown')

  await first.say('call remind text="water the plants" inMinutes=0.01', /turn 5 ·/)
  const woken = await first.say(undefined, /turn 6 ·/)
  expect(woken).toMatch(
    /◆ memory\.proactive wakes the agent .*\n +│ Reminder: water the plants\n │ memory says: Reminder: water the plants/,
  )
  expect(await first.say('/inbox', /inf_/)).toMatch(/done +memory\/memory\.proactive reminder-1-/)

  const file = join(cwd, 'hello.txt')
  const write = `call write_file path=${file} content=hi`
  const refused = await first.say(write, /turn 7 ·/)
  expect(refused).toMatch(/\? 1\. Allow the tool write_file of files on .*hello\.txt/)
  expect(refused).toContain('Refused: without a terminal, nobody can be asked')
  expect(refused).toContain('✗ refused files.write_file')
  expect(existsSync(file)).toBe(false)
  const why = await first.say('/why', /hook\.after +memory/)
  expect(why).toMatch(/✗ tool +files\/files\.edit refused, write_file/)
  expect(why).toMatch(/APPROVAL_REFUSED, rule otherwise\.scope/)
  await first.say('/allow', /Approved for the next time/)
  const allowed = await first.say(write, /turn 8 ·/)
  expect(allowed.match(/\? Allow|✓ Allow/g)).toEqual(['✓ Allow'])
  expect(readFileSync(file, 'utf8')).toBe('hi')
  expect(await first.say('/undo', /is undone\n.*\n/)).toContain('✓ undone  files.write_file')
  expect(existsSync(file)).toBe(false)

  await first.say('call write_note name=shopping text=milk', /turn 9 ·/)
  await first.say('call write_note name=shopping text=honey', /turn 10 ·/)
  expect(await first.say('/undo', /is undone\n.*\n/)).toContain('notes.write_note by restoring its state')
  expect(await first.say('/state', /\{"shopping"/)).toContain('{"shopping":"milk"}')
  expect(await first.say('/cost 4', /you asked/)).toMatch(
    /turn 4 .*\n(?: +\d+ .*\n)* +\d+ memory\/memory\.retrieval \(memory\.retrieval, beforeUser\)/,
  )
  expect(await first.say('/audit kind=tool outcome=refused', /The audit log is intact: \d+ entries/)).toMatch(
    /✗ tool .*write_file/,
  )
  expect(await first.finish()).toBe(0)
  expect(first.output()).not.toContain('\u001b')
  expect(first.errors()).toBe('')

  const second = start(cwd)
  expect(await second.say(undefined, /Ctrl-D ends/)).toMatch(
    /From before: 8 turns; the last:[\s\S]*write_note name=shopping text=milk/,
  )
  expect(await second.say('What does Kim like?', /turn 11 ·/)).toContain('Kim likes green tea')
  expect(await second.say('/state', /\{"shopping"/)).toContain('{"shopping":"milk"}')
  expect(await second.say('/inbox', /inf_/)).toMatch(/done +memory\/memory\.proactive reminder-1-/)
  expect(await second.say('/undo 9', /are undone/)).toMatch(/turn 9 .* and the 1 after it are undone/)
  expect(await second.say('/quit', /\/quit\n/)).toBeDefined()
  expect(await second.ended).toBe(0)
})

test('a signal to end, and Ctrl-C twice, end it as well as the end of the input', { timeout: 60_000 }, async () => {
  for (const signals of [['SIGTERM'], ['SIGINT', 'SIGINT']] as const) {
    const terminal = start(await folder())
    await terminal.say(undefined, /Ctrl-D ends/)
    const [one, two] = signals
    terminal.child.kill(one)
    if (two !== undefined) {
      await terminal.say(undefined, /Ctrl-C again/)
      terminal.child.kill(two)
    }
    expect(await terminal.ended).toBe(0)
  }
})

test('a config that came with a folder starts nothing unasked; what is recorded can be played again', {
  timeout: 60_000,
}, async () => {
  const cwd = await folder()
  const marker = join(cwd, 'started')
  const bait = { command: process.execPath, args: ['-e', `fs.writeFileSync(${JSON.stringify(marker)}, '')`] }
  writeFileSync(join(cwd, '.mcp.json'), JSON.stringify({ mcpServers: { bait } }))
  const careful = start(cwd, ['--config', '.mcp.json'])
  expect(await careful.finish()).toBe(1)
  expect(careful.errors()).toMatch(/^vivarium: .*\.mcp\.json is not approved\. It starts 1 program\. .*so the file is not used\n/)
  expect(careful.errors()).toContain('--trust')
  expect(existsSync(marker)).toBe(false)
  const trusting = start(cwd, ['--config', '.mcp.json', '--trust', '--record', 'session.jsonl'])
  await trusting.say('Hello', /turn 1 ·/)
  expect(await trusting.finish()).toBe(0)
  expect(existsSync(marker)).toBe(true)
  const played = await replay(join(cwd, 'session.jsonl'), { open: given => createHost(given) })
  expect(played.turns).toBe(1)
  expect(played.differences.filter(({ where }) => where.startsWith('turn'))).toEqual([])
})

test('what is wrong with its arguments or its config is one line, and its status 1', { timeout: 60_000 }, async () => {
  const cwd = await folder()
  const missing = start(cwd, ['--config', 'nothing.json'])
  expect(await missing.finish()).toBe(1)
  expect(missing.errors()).toMatch(/^vivarium: The config file nothing\.json does not exist\n {2}→ .*--config\n$/)
  const unknown = start(cwd, ['--wrong'])
  expect(await unknown.finish()).toBe(1)
  expect(unknown.errors()).toMatch(/^vivarium: .*--wrong/)
  const help = start(cwd, ['--help'])
  expect(await help.finish()).toBe(0)
  expect(help.output()).toMatch(/^Usage: vivarium up/)
  rmSync(join(cwd, '.vivarium'), { recursive: true, force: true })
})
