/**
 * Plays a page of the documentation: writes its files, runs its commands, and compares what they print with what the page shows.
 *
 * - A block of code with a file name, ```` ```ts [server.ts] ````, is written to that file. A `diff` changes the file; `@@` ends a hunk.
 * - `sh` runs, and has to succeed.
 * - `console` runs each line that begins with `$ `. The lines after it are printed, in any order (servers come up as they like), and others
 *   may be, too. A line that ends with `…` stands for one that begins so, and `…` alone for any.
 * - `console` with a name, ```` ```console [server] ````, is a terminal of its own, whose last command goes on. Later blocks of that name
 *   go on with its output. What follows `› ` is typed there; `^C` interrupts it.
 *
 * Packages are linked instead of installed, ports and ids are exchanged for those of this run, and config files are trusted.
 */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { stripVTControlCharacters } from 'node:util'

const root = join(import.meta.dirname, '../..')
export interface WalkthroughOptions {
  /** What may be imported beside this package. Default: zod. */
  readonly packages?: readonly string[]
  /** Variables for all commands. */
  readonly env?: NodeJS.ProcessEnv
  /** How long a command may take, and how long the output of a terminal is waited for. Default: a minute. */
  readonly waitMs?: number
}

/** Stands before npm: what it would install is linked already. */
const npm = (path: string): string => `#!/bin/sh
case "$1" in install | ci | pack) exit 0 ;; esac
PATH='${path}' exec npm "$@"
`
/** As in a new server. */
const compilerOptions = [
  '--ignoreConfig --module nodenext --target es2024 --lib es2024,esnext.disposable,dom --types node --strict --noEmit',
  '--erasableSyntaxOnly --verbatimModuleSyntax --allowImportingTsExtensions --skipLibCheck --pretty false',
].join(' ')
/** Variables that would change what is printed. */
const ownVariables = /^(?:CI|FORCE_COLOR|NODE_|VITEST|VIVARIUM_|XDG_|OPENAI_|ANTHROPIC_)/

export interface Block {
  readonly language: string
  readonly name: string | undefined
  readonly text: string
  readonly line: number
}

/** The fenced blocks of a page, in order. */
export function blocksOf(markdown: string): Block[] {
  return [...markdown.matchAll(/^```(\w+)(?: \[([^\]]+)\])?\n(.*?)^```$/gms)].map(match => ({
    language: match[1] ?? '',
    name: match[2],
    text: match[3] ?? '',
    line: markdown.slice(0, match.index).split('\n').length,
  }))
}

/** A folder in which pages are played. */
export class Walkthrough implements AsyncDisposable {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'walkthrough-')))
  readonly #ports = new Map<string, number>()
  readonly #terminals = new Map<string, Terminal>()
  /** What was printed in the place of an id that the page shows. */
  readonly #ids = new Map<string, string>()
  readonly #env: NodeJS.ProcessEnv
  #cwd = this.folder

  readonly #waitMs: number

  constructor({ packages = ['zod'], env = {}, waitMs = 60_000 }: WalkthroughOptions = {}) {
    this.#waitMs = waitMs
    const modules = join(this.folder, 'node_modules')
    mkdirSync(join(modules, '.bin'), { recursive: true })
    symlinkSync(root, join(modules, 'vivarium'))
    symlinkSync(join(root, 'bin/vivarium.mjs'), join(modules, '.bin/vivarium'))
    for (const name of [...packages, '@types/node']) {
      mkdirSync(dirname(join(modules, name)), { recursive: true })
      symlinkSync(join(root, 'node_modules', name), join(modules, name))
    }
    const path = [join(modules, '.bin'), dirname(process.execPath), process.env['PATH']].join(delimiter)
    const bin = join(this.folder, '.bin')
    mkdirSync(bin)
    writeFileSync(join(bin, 'npm'), npm(path), { mode: 0o755 })
    const PATH = `${bin}${delimiter}${path}`
    const HOME = join(this.folder, '.home')
    mkdirSync(HOME)
    const kept = Object.entries(process.env).filter(([name]) => !ownVariables.test(name))
    this.#env = { ...Object.fromEntries(kept), PATH, HOME, NO_COLOR: '1', ...env }
  }

  /** Plays a page. Throws where it prints something else. */
  async play(markdown: string): Promise<void> {
    for (const block of blocksOf(markdown)) {
      try {
        await this.#step({ ...block, text: await this.#withPorts(block.text) })
      } catch (error) {
        throw new Error(`line ${block.line}: ${(error as Error).message}`, { cause: error })
      }
    }
  }

  /** What the compiler says of the programs in the folder, with the options of a new server. */
  async typeErrors(): Promise<string> {
    writeFileSync(join(this.#cwd, 'package.json'), '{ "type": "module" }')
    const { printed } = await this.#run(`node ${join(root, 'node_modules/typescript/bin/tsc')} ${compilerOptions} *.ts`)
    return printed
  }

  /** Writes or changes the file that a block is about, if any. */
  #apply({ language, name, text }: Block): void {
    if (name === undefined) return
    const path = join(this.#cwd, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, language === 'diff' ? changed(readFileSync(path, 'utf8'), text) : text)
  }

  async #step(block: Block): Promise<void> {
    const { language, name, text } = block
    if (language === 'sh') {
      const { status, printed } = await this.#run(text)
      if (status !== 0) throw new Error(`it ended with ${status}: ${printed}`)
    } else if (language !== 'console') this.#apply(block)
    else if (name === undefined) await this.#console(text)
    else await this.#terminal(name, text)
  }

  /** Each command with what it prints. */
  async #console(text: string): Promise<void> {
    for (const part of text.split(/^\$ /gm).slice(1)) {
      const [command = '', ...shown] = part.split('\n')
      const { printed } = await this.#run(this.#withIds(command))
      const missing = this.#firstMissing(shown, printed)
      if (missing !== undefined) throw new Error(`${command}\ndoes not print "${missing}", but:\n${printed}`)
    }
  }

  /** Goes on with a terminal, line by line. */
  async #terminal(name: string, text: string): Promise<void> {
    let shown: string[] = []
    const wait = async (): Promise<Terminal | undefined> => {
      const terminal = this.#terminals.get(name)
      if (terminal !== undefined) await this.#waitFor(name, terminal, shown)
      else if (shown.length > 0) throw new Error(`there is no terminal "${name}"`)
      shown = []
      return terminal
    }
    for (const line of text.split('\n')) {
      if (line.startsWith('$ ')) {
        const before = await wait()
        if (before?.child.exitCode === null && before.child.signalCode === null) throw new Error(`"${name}" is busy`)
        const child = this.#shell(this.#withIds(line.slice(2)), 'pipe')
        this.#terminals.set(name, { child, output: collect(child), read: 0 })
      } else if (line === '^C') await interrupt(await wait())
      else {
        if (line.startsWith('› ')) (await wait())?.child.stdin?.write(`${line.slice(2)}\n`)
        shown.push(line)
      }
    }
    await wait()
  }

  async #waitFor(name: string, terminal: Terminal, shown: readonly string[]): Promise<void> {
    for (const until = Date.now() + this.#waitMs; ; await sleep(50)) {
      const printed = this.#plain(terminal.output())
      const missing = this.#firstMissing(shown, printed.slice(terminal.read))
      if (missing === undefined) {
        terminal.read = printed.length
        return
      }
      if (Date.now() > until || terminal.child.exitCode !== null)
        throw new Error(`"${name}" does not print "${missing}", but:\n${printed.slice(terminal.read)}`)
    }
  }

  async #run(commands: string): Promise<{ readonly status: number; readonly printed: string }> {
    const [place, variables] = [join(this.folder, '.place'), join(this.folder, '.variables')]
    const child = this.#shell(`${commands}\nstatus=$?\npwd > '${place}'\nexport -p > '${variables}'\nexit $status`)
    const output = collect(child)
    const timer = setTimeout(() => kill(child), this.#waitMs)
    const [status] = (await once(child, 'close')) as [number | null]
    clearTimeout(timer)
    if (existsSync(place)) this.#cwd = readFileSync(place, 'utf8').trim()
    return { status: status ?? 1, printed: this.#plain(output()) }
  }

  /** With the variables that earlier commands have exported. npx would only start what is linked here, and slowly. */
  #shell(commands: string, input: 'ignore' | 'pipe' = 'ignore'): ChildProcess {
    const variables = join(this.folder, '.variables')
    const before = `[ -e '${variables}' ] && . '${variables}'\nnpx() { "$@"; }\nexec 2>&1\n`
    const options: SpawnOptions = { cwd: this.#cwd, env: this.#env, detached: true, stdio: [input, 'pipe', 'inherit'] }
    return spawn('bash', ['-c', `${before}${commands}`], options)
  }

  /** Ports of the page become free ones. A file that is served without a port is served at 3000. Nobody can be asked about a config. */
  async #withPorts(text: string): Promise<string> {
    const whole = text
      .replaceAll(/^\$ npx vivarium serve (?!.*--(?:port|stdio)).*/gm, command => `${command} --port 3000`)
      .replaceAll(/^\$ npx vivarium up(?!.*--trust)\b/gm, command => `${command} --trust`)
    for (const [, port = ''] of whole.matchAll(portPattern)) if (!this.#ports.has(port)) this.#ports.set(port, await freePort())
    return whole.replaceAll(portPattern, port => String(this.#ports.get(port)))
  }

  /** The first line of a page that is not printed. */
  #firstMissing(shown: readonly string[], printed: string): string | undefined {
    const lines = printed.split('\n')
    const taken = new Set<number>()
    for (const line of shown.filter(each => each.trim() !== '' && each.trim() !== '…')) {
      const wanted = comparable(line)
      const isIt = wanted.endsWith('…')
        ? (each: string) => comparable(each).startsWith(wanted.slice(0, -1).trimEnd())
        : (each: string) => comparable(each) === wanted
      const found = lines.findIndex((each, index) => !taken.has(index) && isIt(each))
      if (found < 0) return line
      const ids = lines[found]?.match(idPattern) ?? []
      for (const [index, id] of (line.match(idPattern) ?? []).entries()) this.#ids.set(id, ids[index] ?? id)
      taken.add(found)
    }
    return undefined
  }

  #withIds(command: string): string {
    return command.replaceAll(idPattern, id => this.#ids.get(id) ?? id)
  }

  #plain(output: string): string {
    return stripVTControlCharacters(output).replaceAll(this.folder, '/home/you')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const open = [...this.#terminals.values()].filter(({ child }) => child.exitCode === null && child.signalCode === null)
    const closed = open.map(({ child }) => once(child, 'close'))
    for (const { child } of open) kill(child)
    await Promise.all(closed)
    rmSync(this.folder, { recursive: true, force: true })
  }
}

interface Terminal {
  readonly child: ChildProcess
  readonly output: () => string
  /** Up to where its output was compared. */
  read: number
}

const portPattern = /(?<=[: '])([37][014]\d{2})\b/g

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

function collect(child: ChildProcess): () => string {
  let output = ''
  child.stdout?.setEncoding('utf8').on('data', chunk => (output += chunk))
  return () => output
}

async function interrupt(terminal: Terminal | undefined): Promise<void> {
  if (terminal === undefined || terminal.child.exitCode !== null) return
  const closed = once(terminal.child, 'close')
  kill(terminal.child, 'SIGINT')
  await closed
}

/** With all that it has started. */
function kill({ pid }: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal)
  } catch {
    // It has ended.
  }
}

function changed(text: string, diff: string): string {
  let made = text
  for (const hunk of diff.split(/^@@\n/m)) {
    const lines = hunk.split('\n').slice(0, -1)
    const side = (sign: string): string =>
      lines
        .filter(line => !line.startsWith(sign))
        .map(line => `${line.slice(1)}\n`)
        .join('')
    const old = side('+')
    if (made.split(old).length !== 2) throw new Error(`it does not have once:\n${old}`)
    made = made.replace(old, () => side('-'))
  }
  return made
}

const idPattern =
  /(?<![\w-])(?:[0-9a-f]{8}-[0-9a-f-]{27}|[a-z]{2,5}_[\w-]{16,}|(?=[0-9a-f]*\d)[0-9a-f]{8,}|(?=[\w-]*[a-z])(?=[\w-]*[A-Z])[\w-]{22,})(?![\w-])/g

/** A line without what differs from run to run: times, durations, ids, digests, how much has been written. */
function comparable(line: string): string {
  return line
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z|\d\d-\d\d \d\d:\d\d:\d\d/g, '<time>')
    .replaceAll(idPattern, '<id>')
    .replace(/ \(\d+ up so far\)/, '')
    .replace(/^\d+ lines/, '<count> lines')
    .replaceAll(/\b\d[\d.,]* ?(?:ms|s)\b/g, '<duration>')
    .replaceAll(/\s+/g, ' ')
    .trim()
}
