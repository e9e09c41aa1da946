/** Why a program does not serve: it is not found, does not start, says something else than messages, or misses a variable. */
import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { basename, delimiter, isAbsolute, join, resolve } from 'node:path'
import type { Command } from '../../client/target.ts'
import { durationText } from '../../core/clock.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { brief } from '../terminal/text.ts'
import { clueIn, type Suspect } from './clues.ts'
import { type Finding, fail, noServer, ok, warn } from './finding.ts'

/** Where the programs come from that most servers are started with. */
const origins: ReadonlyMap<string, string> = new Map([
  ['npx', 'Install Node, which includes it: https://nodejs.org'],
  ['node', 'Install Node: https://nodejs.org'],
  ['uvx', 'Install uv, which includes it: https://docs.astral.sh/uv'],
  ['uv', 'Install uv: https://docs.astral.sh/uv'],
  ['python', 'Install Python, or use the command python3'],
  ['python3', 'Install Python 3'],
  ['docker', 'Install Docker and start it'],
  ['bunx', 'Install Bun, which includes it: https://bun.sh'],
  ['deno', 'Install Deno: https://deno.com'],
])

/** The finding for a command that cannot be run. */
const unusable = (message: string, fix: string): Finding => noServer('command', message, fix)

/** Before it is started. What is found here explains what comes after. `near` is the folder of its config. */
export function examineCommand(
  { command, args = [], cwd, env = {} }: Command,
  ambient: Readonly<Record<string, string | undefined>>,
  near?: string,
): readonly Finding[] {
  const folder = cwd ?? process.cwd()
  const odd = [command, ...args, ...(cwd === undefined ? [] : [cwd])].map(examineWord).find(each => each !== undefined)
  if (odd !== undefined) return [odd]
  if (cwd !== undefined && !existsSync(cwd)) return [fail('cwd', `The folder ${clip(cwd)} does not exist`, 'Correct "cwd"', 4)]
  const [program = '', ...words] = command.split(/\s+/)
  if (words.length > 0 && !existsSync(resolve(folder, command)))
    return [
      unusable(
        `"command" contains arguments: ${clip(command)}`,
        `Move them to "args": "command": ${JSON.stringify(clip(program))}, "args": ${clip(JSON.stringify([...words, ...args]), 200)}`,
      ),
    ]
  const path = env['PATH'] ?? ambient['PATH'] ?? ''
  const found =
    command.includes('/') || isAbsolute(command)
      ? examinePath(resolve(folder, command), nearby(command, near))
      : onPath(command, path)
  if (typeof found !== 'string') return [found]
  return [ok('command', found), ...examineScript(command, args, folder, near)]
}

/** What JSON has made of a path with backslashes, and paths of another system. */
function examineWord(word: string): Finding | undefined {
  const shown = JSON.stringify(word.slice(0, 80))
  if (/^[A-Za-z]:[^\u0000-\u001f]*[\u0000-\u001f]/.test(word))
    return fail(
      'path',
      `${shown} contains a control character, which JSON made of a single backslash`,
      'Double each backslash: "C:\\\\new"; or write /',
      4,
    )
  if (process.platform === 'win32' || !/^[A-Za-z]:[\\/]|^\\\\\w/.test(word)) return undefined
  const [, drive = '', rest = ''] = /^([A-Za-z]):[\\/](.*)$/s.exec(word) ?? []
  const linux = `/mnt/${drive.toLowerCase()}/${rest.replaceAll('\\', '/')}`
  const fix = drive !== '' && existsSync(linux) ? `Write ${clip(linux, 200)}` : 'Write the path on this machine'
  return fail('path', `${shown} is a Windows path, but this is not Windows`, fix, 4)
}

/** Where a relative path leads from the folder of the config: many mean that. */
function nearby(path: string, near: string | undefined): string | undefined {
  const file = near === undefined || isAbsolute(path) ? undefined : resolve(near, path)
  return file !== undefined && existsSync(file) ? file : undefined
}

/** Where a program lies, or that it is not on the PATH. */
function onPath(command: string, path: string): string | Finding {
  for (const place of path.split(delimiter)) {
    const file = join(place, command)
    if (place !== '' && isProgram(file)) return file
  }
  const origin = origins.get(command)
  const fix = `${origin === undefined ? 'Install it' : origin}; or write its full path: desktop programs get a shorter PATH than your shell`
  return unusable(`The PATH has no program ${clip(command)}`, fix)
}

/** The file of a program, or why it cannot be run. */
function examinePath(file: string, meant?: string): string | Finding {
  if (!existsSync(file))
    return unusable(`The file ${clip(file, 200)} does not exist`, meant === undefined ? 'Correct "command"' : beside(meant))
  if (statSync(file).isDirectory()) return unusable(`${clip(file)} is a folder`, 'Write the path of a program in it')
  if (isProgram(file)) return file
  return unusable(
    `${clip(file)} is not executable`,
    `Run chmod +x ${clip(file)}, or start it with its interpreter: node ${clip(file)}`,
  )
}

/** Whether a file may be run. */
function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}

/** Programs that run a script, which is then looked for, too. */
const interpreters = /(^|[\\/])(node|bun|deno|python3?|tsx|ts-node)(\.exe)?$/

/** What an interpreter is to run. */
function examineScript(command: string, args: readonly string[], folder: string, near: string | undefined): readonly Finding[] {
  const script = args.find(arg => !arg.startsWith('-'))
  if (!interpreters.test(command) || script === undefined || !/\.([cm]?[jt]s|py)$/.test(script) || args.includes('-e')) return []
  const whole = resolve(folder, script)
  if (!existsSync(whole)) {
    const meant = nearby(script, near)
    const fix = meant === undefined ? 'Correct the path; a full path is safest' : beside(meant)
    return [fail('script', `The file ${clip(whole, 200)} does not exist`, fix, 4)]
  }
  if (isAbsolute(script) || near === undefined) return []
  return [
    warn(
      'script',
      `${clip(script)} is a path relative to ${clip(folder, 200)}`,
      `Write the full path, because other clients start servers in other folders: ${clip(whole, 200)}`,
    ),
  ]
}

/** The fix for a path that was meant from the folder of the config. */
function beside(file: string): string {
  return `The file is in the folder of the config: write its full path, ${clip(file, 200)}`
}

/** What a running program let slip. */
export interface Traces {
  /** Lines on standard output that are no messages. */
  readonly noise: readonly string[]
  /** The last lines on standard error. */
  readonly stderr: readonly string[]
}

/** A header of those that language servers put before their messages. */
export function isFramed(line: string): boolean {
  return /^content-length:/i.test(line)
}

/** Lines beside the messages. */
export function examineOutput({ noise }: Traces): readonly Finding[] {
  const [first] = noise
  if (first === undefined) return []
  const quoted = `"${brief(first, 80)}"`
  if (isFramed(first))
    return [
      fail(
        'stdout',
        'The program separates messages by Content-Length, as language servers do',
        'Write each message on its own line',
        1,
      ),
    ]
  const more = noise.length > 1 ? ` and ${noise.length - 1} more` : ''
  return [
    warn(
      'stdout',
      `The program writes other text than messages to standard output: ${quoted}${more}`,
      'Log to standard error (console.error, logging to stderr): strict clients fail on such a line',
    ),
  ]
}

/** Why it did not open, by what it said. */
export function examineStart(error: Error, { stderr, noise }: Traces, suspect: Suspect, waitMs: number): Finding {
  const found = clueIn([...stderr, ...noise].join('\n'), suspect)
  if (found !== undefined) return found
  const words = stderr.length === 0 ? '' : `. On standard error: "${brief(stderr.slice(-3).join(' '), 200)}"`
  if (error.name === 'TimeoutError' && suspect.unnamed.length > 0)
    return noServer(
      'start',
      `The program did not answer within ${durationText(waitMs)}. It may not be able to fetch its package${words}`,
      `Your shell sets ${suspect.unnamed.join(', ')}, but the config does not pass it on: add it to "env", or run the command once in your shell`,
    )
  if (error.name === 'TimeoutError' || /within|timeout|No answer/i.test(error.message))
    return noServer(
      'start',
      `The program runs, but did not answer within ${durationText(waitMs)}${words}`,
      'Check that it serves over stdio: some programs need an argument such as stdio. If it is only slow, pass --timeout 30s',
    )
  return noServer(
    'start',
    `${brief(error.message, 300)}${error.message.includes('stderr') ? '' : words}`,
    'Run the command in your shell and read its output',
  )
}

/** The Node that would run it, as it calls itself. Only asked where something failed. */
export function nodeOf(
  { command, env = {} }: Command,
  ambient: Readonly<Record<string, string | undefined>>,
): string | undefined {
  const name = basename(command).replace(/\.(exe|cmd)$/i, '')
  if (name !== 'node' && name !== 'npx') return undefined
  const node = name === 'npx' ? 'node' : command
  const said = spawnSync(node, ['--version'], { env: { ...ambient, ...env }, encoding: 'utf8', timeout: 2_000 })
  return said.status === 0 ? said.stdout.trim() : undefined
}
