/** What programs say when they fail, and what helps against it. */
import { isAbsolute } from 'node:path'
import { clip } from '../../jsonrpc/limits.ts'
import { brief } from '../terminal/text.ts'
import { type Finding, fail, noServer } from './finding.ts'

/** What is known of the program that failed. */
export interface Suspect {
  /** The version of the Node that runs it, where one does. */
  readonly node: string | undefined
  /** It was typed, and so gets all variables of this shell; else a config names those that it gets. */
  readonly typed: boolean
  /** Variables by which this shell reaches the network, and a program that has to be fetched does not get. */
  readonly unnamed: readonly string[]
  /** Whether this shell has the variable. */
  has(variable: string): boolean
  /** The value that the config gives the program for the variable. */
  given(variable: string): string | undefined
}

/** Words that a program says, and what they mean. */
interface Clue {
  /** Looked for in all that was said on both outputs. */
  readonly says: RegExp
  tell(found: RegExpExecArray, suspect: Suspect): Finding
}

/** How programs say that something is missing. */
const needs = 'required|missing|not set|not defined|undefined|must be set|must be provided|unset|not provided|not found'
/** The name of a variable; codes of errors look alike. */
const variable = '(?!ERR_|ENV_|NODE_MODULE)([A-Z][A-Z0-9]*_[A-Z0-9_]+)'

/** The finding for a program that does not start as it should. */
const start = (message: string, fix: string): Finding => noServer('start', message, fix)

/** The first that fits is told; so what is surest comes first. */
const clues: readonly Clue[] = [
  {
    says: /Cannot find (?:package|module) '([^']+)'/,
    tell: ([, name = '']) =>
      name.startsWith('.') || isAbsolute(name)
        ? start(`The program imports ${clip(name)}, which does not exist`, 'Build the program, or correct the path')
        : start(`The package ${clip(name)} is not installed`, `Run npm install ${clip(name)}`),
  },
  {
    says: /ModuleNotFoundError: No module named '([^']+)'/,
    tell: ([, name = '']) =>
      start(`The Python module ${clip(name)} is not installed`, `Run pip install ${clip(name)}, or start the program with uvx`),
  },
  {
    says: /EBADENGINE[\s\S]*?required: \{ node: '([^']+)' \}/,
    tell: ([, wanted = ''], { node }) =>
      newer(`The program requires Node ${clip(wanted)}, but runs on ${node ?? 'another version'}`),
  },
  {
    says: /(?:requires|needs) (Node(?:\.js)? ?[v>=^~ ]*\d[\w.]*)/i,
    tell: ([, wanted = ''], { node }) => newer(`The program requires ${clip(wanted)}, but runs on ${node ?? 'another version'}`),
  },
  {
    says: /No such built-in module: (node:\S+)/,
    tell: ([, module = ''], { node = 'this Node' }) => newer(`${node} has no module ${clip(module)}`),
  },
  {
    says: /ERR_UNKNOWN_FILE_EXTENSION[^\n]*"\.([cm]?tsx?)"/,
    tell: ([, extension = ''], { node = 'this Node' }) => newer(`${node} cannot run .${extension} files`),
  },
  {
    says: /SyntaxError: Cannot use import statement outside a module|Warning: To load an ES module/,
    tell: () =>
      start(
        'The file is an ES module, but Node loads it as CommonJS',
        'Add "type": "module" to its package.json, or rename it to .mjs',
      ),
  },
  { says: /\bKeyError: '([A-Z][A-Z0-9_]+)'/, tell: missingVariable },
  { says: new RegExp(`\\b${variable}\\b[^\\n]*\\b(?:${needs})`), tell: missingVariable },
  {
    says: new RegExp(`\\b(?:[Rr]equired|[Mm]issing|[Ss]et|[Pp]rovide|[Nn]o)\\b[^\\n]*?\\b${variable}\\b`),
    tell: missingVariable,
  },
  { says: /\benv(?:ironment)?(?: variable| var)\b[^\n]*?\b([A-Z][A-Z0-9_]{2,})\b/, tell: missingVariable },
  {
    says: /^vivarium: (.+)(?:\n\s*→ (.+))?$/m,
    tell: ([, message = '', fix]) => start(brief(message, 300), brief(fix ?? 'Correct the file', 200)),
  },
  {
    says: /EADDRINUSE|address already in use/i,
    tell: ({ input }) => portTaken(/(?:EADDRINUSE|already in use)[^\n]*?[:\s(](\d{2,5})\b|\bport:? (\d{2,5})\b/i.exec(input)),
  },
  {
    says: /(?:404 Not Found|E404)[^\n]*?(?:'([^']+)')?/,
    tell: () => start('The registry has no such package', 'Correct the name of the package'),
  },
  {
    says: /could not determine executable to run/,
    tell: () => start('The package has no command to run', 'Look into its description: the package is not a server'),
  },
  {
    says: /npm (?:error|ERR!)[^\n]*\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ECONNRESET)\b/,
    tell: ([, code = '']) => start(`npm cannot reach the registry (${code})`, 'Check your network, or install the package first'),
  },
  {
    says: /Cannot connect to the Docker daemon|docker daemon is not running/i,
    tell: () => start('Docker is not running', 'Start Docker'),
  },
  {
    says: /pull access denied for (\S+)|manifest for (\S+) not found/i,
    tell: ([, denied, missing]) =>
      start(
        `There is no Docker image ${clip((denied ?? missing ?? '').replace(/[,.]$/, ''))}`,
        'Correct its name, or run docker login',
      ),
  },
  {
    says: /https?:\/\/[\w.:-]*:\d+\S*/,
    tell: ([url]) =>
      start(
        'The program serves HTTP and writes nothing to standard output',
        `Use its address, ${clip(url)}, or start it with the argument that makes it speak over stdio`,
      ),
  },
  {
    says: /\b(?:listen|running|serv|start)\w*\b[^\n]*\bport:? ?(\d{2,5})\b/i,
    tell: ([, port]) =>
      start(
        `The program serves HTTP on port ${port} and writes nothing to standard output`,
        `Use its address, http://localhost:${port} (often with /mcp), or start it with the argument that makes it speak over stdio`,
      ),
  },
  {
    says: /EACCES|permission denied/i,
    tell: ({ input }) =>
      start(
        `The program lacks a permission: ${brief(lineWith(input, /EACCES|permission denied/i), 160)}`,
        'Grant the permission, or use another path',
      ),
  },
  {
    says: /^[Uu]sage:? .+/m,
    tell: ([usage]) => start(`The program expects other arguments: ${brief(usage, 160)}`, 'Correct "args"'),
  },
]

/** The first clue in what was said. */
export function clueIn(said: string, suspect: Suspect): Finding | undefined {
  for (const { says, tell } of clues) {
    const found = says.exec(said)
    if (found !== null) return withVariable(tell(found, suspect), suspect)
  }
  const crash = crashIn(said)
  return crash && withVariable(crash, suspect)
}

/** The same finding; where it names a variable that the config forgets or writes wrongly, with what helps. */
function withVariable(finding: Finding, { typed, given, has }: Suspect): Finding {
  const [, name] = new RegExp(`\\b${variable}\\b`).exec(finding.message) ?? []
  if (typed || name === undefined) return finding
  const value = given(name)
  const [, bare] = /^\$([A-Za-z_]\w*)$/.exec(value ?? '') ?? []
  if (bare !== undefined) return { ...finding, fix: `"env.${name}" is the text $${bare}: variables are written \${${bare}}` }
  return value === undefined && has(name) ? { ...finding, fix: shellHas(name) } : finding
}

/** The fix for a variable that only the shell has. */
function shellHas(name: string): string {
  return `Your shell sets it, but a configured program gets only what its config names. Add "env": { "${name}": "\${${name}}" }`
}

/** An uncaught error by its first line, and the place in code that is not Node's own. */
function crashIn(said: string): Finding | undefined {
  const [, what] = /^(?:Uncaught )?((?:[A-Z]\w*)?(?:Error|Exception)\b(?: \[\w+\])?: .+)$/m.exec(said) ?? []
  if (what === undefined) return undefined
  const [, place] =
    /^\s+at [^\n]*?\(?(?:file:\/\/)?([^\s()]+:\d+):\d+\)?$/m.exec(said.replace(/^\s+at [^\n]*node:internal[^\n]*$/gm, '')) ??
    /^\s*File "([^"]+", line \d+)[\s\S]*$/m.exec(said) ??
    []
  const where = place === undefined ? '' : ` at ${brief(place.replace('", line ', ':'), 120)}`
  return start(`The program fails when it starts: ${brief(what, 200)}`, `Fix the error${where}`)
}

/** The finding for a variable that the program does not get. */
function missingVariable([, name = '']: RegExpExecArray, { typed, has }: Suspect): Finding {
  const shown = clip(name)
  const fix = typed
    ? `Set it: export ${shown}=…; in a config, add it to "env"`
    : has(name)
      ? shellHas(shown)
      : `Add it to the config: "env": { "${shown}": "…" }`
  return fail('env', `The environment variable ${shown} is missing`, fix, 4)
}

/** The finding for a program that wants another Node. */
function newer(what: string): Finding {
  return fail('node', what, 'Install a newer Node, or write the full path of one as the command', 4)
}

/** The finding for a port that another program has. */
function portTaken(found: RegExpExecArray | null): Finding {
  const port = found?.[1] ?? found?.[2]
  if (port === undefined)
    return start('The port that the program uses is already in use', 'End the other program, or configure another port')
  return start(`Port ${port} is already in use`, `End the other program (lsof -i :${port} shows it), or configure another port`)
}

/** The line in which the words stand. */
function lineWith(text: string, words: RegExp): string {
  return text.split('\n').find(line => words.test(line)) ?? ''
}
