/** Why a program does not serve: it is not found, does not start, says something else than messages, or misses a variable. */
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { delimiter, isAbsolute, join, resolve } from 'node:path'
import type { Command } from '../../client/target.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { brief } from '../terminal/paint.ts'
import { type Finding, fail, ok, warn } from './finding.ts'

/** Where the programs come from that most servers are started with. */
const origins: ReadonlyMap<string, string> = new Map([
  ['npx', 'It comes with Node: https://nodejs.org'],
  ['node', 'Install Node: https://nodejs.org'],
  ['uvx', 'It comes with uv: https://docs.astral.sh/uv'],
  ['uv', 'Install uv: https://docs.astral.sh/uv'],
  ['python', 'Install Python, or write python3'],
  ['python3', 'Install Python 3'],
  ['docker', 'Install Docker, and start it'],
  ['bunx', 'It comes with Bun: https://bun.sh'],
  ['deno', 'Install Deno: https://deno.com'],
])

/** Before it is started. What is found here explains what comes after. */
export function examineCommand(
  { command, args = [], cwd, env = {} }: Command,
  ambient: Readonly<Record<string, string | undefined>>,
): readonly Finding[] {
  const folder = cwd ?? process.cwd()
  if (cwd !== undefined && !existsSync(cwd)) return [fail('cwd', `The folder ${clip(cwd)} does not exist`, 'Correct "cwd"', 4)]
  const [program = '', ...words] = command.split(/\s+/)
  if (words.length > 0 && !existsSync(resolve(folder, command)))
    return [
      fail(
        'command',
        `"command" holds arguments: ${clip(command)}`,
        `They belong in args: "command": ${JSON.stringify(clip(program))}, "args": ${clip(JSON.stringify([...words, ...args]), 200)}`,
        4,
      ),
    ]
  const path = env['PATH'] ?? ambient['PATH'] ?? ''
  const found = command.includes('/') || isAbsolute(command) ? examinePath(resolve(folder, command)) : onPath(command, path)
  if (typeof found !== 'string') return [found]
  return [ok('command', found), ...examineScript(command, args, folder)]
}

function onPath(command: string, path: string): string | Finding {
  for (const place of path.split(delimiter)) {
    const file = join(place, command)
    if (place !== '' && isProgram(file)) return file
  }
  const origin = origins.get(command)
  const fix = `${origin === undefined ? 'Install it' : origin}; or write where it lies: a program with windows gets a shorter PATH than your shell`
  return fail('command', `There is no program ${clip(command)} on the PATH`, fix, 4)
}

function examinePath(file: string): string | Finding {
  if (!existsSync(file)) return fail('command', `There is no file ${clip(file)}`, 'Correct "command"', 4)
  if (statSync(file).isDirectory()) return fail('command', `${clip(file)} is a folder`, 'Name a program in it', 4)
  if (isProgram(file)) return file
  return fail(
    'command',
    `${clip(file)} may not be run`,
    `chmod +x ${clip(file)}, or start it with its interpreter: node ${clip(file)}`,
    4,
  )
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}

const interpreters = /(^|[\\/])(node|bun|deno|python3?|tsx|ts-node)(\.exe)?$/

/** What an interpreter is to run. */
function examineScript(command: string, args: readonly string[], folder: string): readonly Finding[] {
  const script = args.find(arg => !arg.startsWith('-'))
  if (!interpreters.test(command) || script === undefined || !/\.([cm]?[jt]s|py)$/.test(script) || args.includes('-e')) return []
  if (!existsSync(resolve(folder, script)))
    return [fail('script', `There is no file ${clip(resolve(folder, script))}`, 'Correct the path; a whole one is safest', 4)]
  if (isAbsolute(script)) return []
  return [
    warn(
      'script',
      `${clip(script)} is relative to ${clip(folder)}`,
      'Write the whole path: other programs start servers in other folders',
    ),
  ]
}

/** What a running program let slip. */
export interface Traces {
  /** Lines on standard output that are no messages. */
  readonly noise: readonly string[]
  /** The last lines on standard error. */
  readonly stderr: readonly string[]
}

/** Lines beside the messages. */
export function examineOutput({ noise }: Traces): readonly Finding[] {
  const [first] = noise
  if (first === undefined) return []
  const quoted = `"${brief(first, 80)}"`
  if (/^content-length:/i.test(first))
    return [
      fail(
        'stdout',
        'It frames messages by Content-Length, as language servers do',
        'Write each message on a line of its own',
        1,
      ),
    ]
  const more = noise.length > 1 ? ` and ${noise.length - 1} more lines` : ''
  return [
    warn(
      'stdout',
      `It writes on standard output what is no message: ${quoted}${more}`,
      'Log to standard error (console.error, logging to stderr): strict clients break at such a line',
    ),
  ]
}

interface Clue {
  readonly says: RegExp
  tell(found: RegExpExecArray): Finding
}

/** What programs say when they fail, and what helps. The first that fits is told. */
const clues: readonly Clue[] = [
  {
    says: /Cannot find (?:package|module) '([^']+)'/,
    tell: ([, name = '']) =>
      name.startsWith('.') || isAbsolute(name)
        ? fail('start', `It imports ${clip(name)}, which is not there`, 'Build it, or correct the path', 4)
        : fail('start', `The package ${clip(name)} is not installed`, `npm install ${clip(name)}`, 4),
  },
  {
    says: /ModuleNotFoundError: No module named '([^']+)'/,
    tell: ([, name = '']) =>
      fail('start', `The Python module ${clip(name)} is not installed`, `pip install ${clip(name)}, or start it with uvx`, 4),
  },
  {
    says: /\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b[^\n]*\b(required|missing|not set|not defined|undefined|must be set|unset|not provided)/i,
    tell: ([, name = '']) =>
      fail('env', `It misses the variable ${clip(name)}`, `Write it in "env" of the config, or --env ${clip(name)}`, 4),
  },
  {
    says: /\b(?:required|missing|set|provide)\b[^\n]*?\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b/,
    tell: ([, name = '']) =>
      fail('env', `It misses the variable ${clip(name)}`, `Write it in "env" of the config, or --env ${clip(name)}`, 4),
  },
  {
    says: /^vivarium: (.+)(?:\n\s*→ (.+))?$/m,
    tell: ([, message = '', fix]) => fail('start', brief(message, 300), brief(fix ?? 'Correct the file', 200), 4),
  },
  {
    says: /EADDRINUSE[^\n]*?(\d+)?/,
    tell: () => fail('start', 'It wants a port that is taken', 'End what has it, or give it another', 4),
  },
  {
    says: /(?:404 Not Found|E404)[^\n]*?(@?[\w./-]+)?/,
    tell: () => fail('start', 'The registry has no such package', 'Correct the name of the package', 4),
  },
  {
    says: /could not determine executable to run/,
    tell: () => fail('start', 'The package has no command', 'It is no server by itself: look into its description', 4),
  },
  {
    says: /SyntaxError|ERR_UNKNOWN_FILE_EXTENSION|ERR_REQUIRE_ESM|Unsupported engine/,
    tell: ([what]) =>
      fail(
        'start',
        `This Node cannot run it: ${clip(what)}`,
        `It is ${process.versions.node}; try another version, or build the file`,
        4,
      ),
  },
  {
    says: /https?:\/\/[\w.:-]*:\d+\S*/,
    tell: ([url]) => fail('start', 'It serves HTTP, and says nothing on standard output', `Use its address: ${clip(url)}`, 4),
  },
  {
    says: /EACCES|permission denied/i,
    tell: () => fail('start', 'It was not allowed to open something', 'Look at what it says on standard error', 4),
  },
]

/** Why it did not open, by what it said. */
export function examineStart(error: Error, { stderr }: Traces): Finding {
  const said = stderr.join('\n')
  for (const { says, tell } of clues) {
    const found = says.exec(said)
    if (found !== null) return tell(found)
  }
  const words = stderr.length === 0 ? '' : ` On standard error: "${brief(stderr.slice(-3).join(' '), 200)}"`
  if (/within|timeout|No answer/i.test(error.message))
    return fail(
      'start',
      `It runs but does not answer.${words}`,
      'Is it a server over stdio? Some need an argument such as stdio',
      4,
    )
  return fail(
    'start',
    `${brief(error.message, 300)}${error.message.includes('stderr') ? '' : words}`,
    'Start it by hand and read what it says',
    4,
  )
}
