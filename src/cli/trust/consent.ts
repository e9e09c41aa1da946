/**
 * The one decision about a config file: may it be used. A file that came with a folder says what runs on this machine, whom it
 * speaks with and which secrets it sends, so all of it is shown first, and nothing of it is used before the yes. The yes counts for
 * this file with this content; any other content is asked about anew, with what is new marked.
 */
import { hash, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, realpathSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { userFolder } from '../../auth/client/user-storage.ts'
import { type Why, why } from '../../core/suggestion.ts'
import type { HostConfig } from '../../host/config/read.ts'
import type { HostOptions } from '../../host/host.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { jsonValue } from '../../recording/format.ts'
import { CliError, type Io, readFault, replaceFile, textAt } from '../io.ts'
import { packageRoot } from '../own-package.ts'
import { asideOf } from '../print.ts'
import type { CommandLike } from '../program.ts'
import { type Confirm, confirmOn } from '../terminal/questions.ts'
import { LineReader } from '../terminal/reader.ts'
import { fullyEscaped } from '../terminal/text.ts'
import { type FileToUse, fileToUse } from './config-file.ts'

/** Who is asked, and where answers are kept. */
interface TrustOptions {
  /** Undefined: there is nobody to ask. */
  readonly confirm: Confirm
  readonly env: Readonly<Record<string, string | undefined>>
}

declare const agreed: unique symbol
/** A yes to one file as it was read. Only `decide` gives it, and only with it variables are filled in. */
export type Consent = { readonly [agreed]: FileToUse }

/** What the user agreed to, exactly: where the file lies, what stands in it and in the files of variables that it names. */
function consentDigest(file: FileToUse): string {
  return hash('sha256', JSON.stringify([pathOf(file.file), file.text, [...file.envFiles()]]), 'base64url')
}

/** The consent to a file, asked for where it is not known; or why there is none. */
export async function decideConsent(file: FileToUse, { confirm, env }: TrustOptions): Promise<Consent | Why> {
  const { lines, summary } = file.review()
  if (lines.length === 0 || file.own || isExample(file.file)) return consent(file)
  const [path, digest] = [pathOf(file.file), consentDigest(file)]
  const book = bookOf(env)
  if (book.has(path, digest)) return consent(file)
  const before = book.last(path)
  const said = before === undefined ? 'is not approved yet' : 'has changed since you approved it'
  const question = `${fullyEscaped(path)} ${said}. Do you approve all of this?`
  const yes = await confirm(question, [...marked(lines, before), `${summary}.`])
  if (yes !== true)
    return why(
      'CONFIG_NOT_TRUSTED',
      'config.trust',
      `${fullyEscaped(file.file)} is not approved. ${summary}. ${notAgreed(yes)}, so the file is not used`,
      'Read the file. Then add --trust to the command, or run it once in a terminal and answer yes',
    )
  book.add(path, digest, lines)
  return consent(file)
}

/** For a host, which reads its file again when it changes. `known` is the digest of what was agreed to before it was opened. */
export function trustIn(options: TrustOptions, known?: string): NonNullable<HostOptions['onConfig']> {
  let opening = known !== undefined
  return async ({ file }, text) => {
    const next = await fileToUse({ file, text, env: options.env })
    const first = opening
    opening = false
    if (known !== undefined && consentDigest(next) === known) return undefined
    if (first)
      return why(
        'CONFIG_CHANGED',
        'config.trust',
        `${fullyEscaped(file)} changed after you approved it, so it is not used`,
        'Run the command again',
      )
    const decided = await decideConsent(next, options)
    return 'code' in decided ? decided : undefined
  }
}

/** The only place that makes a consent; `--trust` says yes to the file as it is now. */
function consent(file: FileToUse): Consent {
  return { file } as unknown as Consent
}

/** What was not agreed to before stands behind a plus. */
function marked(lines: readonly string[], before: ReadonlySet<string> | undefined): readonly string[] {
  if (before === undefined) return lines
  const now = new Set(lines.map(lineDigest))
  const gone = [...before].filter(line => !now.has(line)).length
  const shown = lines.map(line => `${before.has(lineDigest(line)) ? ' ' : '+'} ${line}`)
  return gone === 0
    ? shown
    : [...shown, `- ${gone} ${gone === 1 ? 'line' : 'lines'} that you approved ${gone === 1 ? 'is' : 'are'} no longer there`]
}

/** Why a question to which the answer was no `true` ends the use of a file. */
function notAgreed(answer: boolean | undefined): string {
  return answer === undefined ? 'Without a terminal you cannot be asked' : 'You did not approve it'
}

/** Without links: the same name may lead elsewhere tomorrow. */
function pathOf(file: string): string {
  try {
    return realpathSync(resolve(file))
  } catch {
    return resolve(file)
  }
}

/** The examples that this program came with are as good as the program. */
function isExample(file: string): boolean {
  const examples = join(packageRoot(), 'examples')
  return existsSync(examples) && pathOf(file).startsWith(`${realpathSync(examples)}${sep}`)
}

/** The option `--trust`. */
export interface TrustOption {
  /** Use the file without a question. */
  readonly trust?: boolean | undefined
}

/** Declares `--trust`; `group`: the heading below which the help lists it. */
export function trustOption(command: CommandLike, group?: string): CommandLike {
  return command.option('--trust', 'Use a config file that you have not approved yet', {
    ...(group !== undefined && { group }),
  })
}

/** The file with its variables filled in. Throws where it may not be used. */
export async function useFile(file: FileToUse, io: Io, { trust }: TrustOption): Promise<HostConfig> {
  return file.filled(await consentFor(file, io, trust))
}

/** The consent to a file, without a question where the command line says yes. Throws where there is none. */
async function consentFor(file: FileToUse, io: Io, trust: boolean | undefined): Promise<Consent> {
  const decided = trust === true ? consent(file) : await decideConsent(file, { confirm: confirmIn(io), env: io.env })
  if ('code' in decided) throw new CliError(decided.message, decided.fix)
  return decided
}

/** What the user agreed to, read once: by it the host is set, and what it reads itself has to be the same. */
export async function agreedConfig(
  config: string,
  trust: boolean | undefined,
  io: Io,
  env: Io['env'],
): Promise<Pick<FileToUse, 'parsed'> & { readonly digest: string }> {
  const text = await configText(config)
  const file = await fileToUse({ file: config, text, env })
  await consentFor(file, io, trust)
  return { parsed: file.parsed, digest: consentDigest(file) }
}

/** The text of the config. Throws a failure that says how to write one. */
async function configText(config: string): Promise<string> {
  try {
    return await readFile(config, 'utf8')
  } catch (cause) {
    const fix = 'Create it with { "mcpServers": { … } }, or pass another file with --config'
    throw new CliError(`The config file ${config} ${readFault(cause)}`, fix, { cause })
  }
}

/** On standard error, so that a result stays a result. */
function confirmIn(io: Io): Confirm {
  return async (text, lines) => {
    if (!io.interactive) return undefined
    const screen = asideOf(io)
    const reader = new LineReader({ input: io.input, output: io.errors, screen, interactive: true })
    try {
      return await confirmOn(screen, reader, text, lines)
    } finally {
      reader.close()
    }
  }
}

// What the user agreed to before. It is kept with the user, where no folder can bring it along, and holds only digests: a file may
// have secrets in it.

/** An answer that is remembered. */
interface StoredConsent {
  /** The path of the file or folder that the user agreed to, without links. */
  readonly file: string
  /** A digest of the file and of the env files that it names; another content is asked about again. */
  readonly digest: string
  /** A digest of each line that was shown, so that the next question can say what is new. */
  readonly lines: readonly string[]
}

/** The config files and folders that the user agreed to. The command writes it; delete an entry to be asked again. */
interface TrustedFiles {
  /**
   * The answers, the oldest first.
   * @maxItems {most}
   */
  readonly agreed: readonly StoredConsent[]
}

/** Answers that are remembered; the oldest are asked for again. */
const most = 1_000

/** A short digest, which tells lines apart and keeps no secret. */
function lineDigest(line: string): string {
  return hash('sha256', line, 'base64url').slice(0, 22)
}

/** The answers that the user's file holds. */
function bookOf(env: Io['env']) {
  const path = join(userFolder(env, 'XDG_CONFIG_HOME', '.config'), 'vivarium', 'trusted.json')
  const all = read(path)
  return {
    /** Whether exactly this was agreed to. */
    has: (file: string, digest: string): boolean => all.some(each => each.file === file && each.digest === digest),
    /** The lines that were agreed to last for this file, by their digests; undefined where there was no question yet. */
    last: (file: string): ReadonlySet<string> | undefined => {
      const found = all.findLast(each => each.file === file)
      return found === undefined ? undefined : new Set(found.lines)
    },
    /** Remembers an answer. */
    add: (file: string, digest: string, lines: readonly string[]): void => {
      const written: TrustedFiles = { agreed: [...all, { file, digest, lines: lines.map(lineDigest) }].slice(-most) }
      replaceFile(path, JSON.stringify(written))
    },
  }
}

/** The answers of a file; none where it is not there, or of no use: then everything is asked about again. */
function read(path: string): readonly StoredConsent[] {
  const value = jsonValue(textAt(path) ?? '')
  const agreed = isRecord(value) ? value['agreed'] : undefined
  return Array.isArray(agreed) ? agreed.filter(isAgreed) : []
}

/** Whether a value of the file is an answer. */
function isAgreed(value: unknown): value is StoredConsent {
  if (!isRecord(value) || typeof value['file'] !== 'string' || typeof value['digest'] !== 'string') return false
  return Array.isArray(value['lines']) && value['lines'].every(line => typeof line === 'string')
}

// The folder in which a host keeps everything, where nobody named one: `.vivarium` in the folder that one works in. What is kept there
// counts as the user's own (answers to questions, grants, events that wait, conversations), so one that came with the folder is asked
// about like a config file. One that this user had made here is known by its path, and by a mark in it that nobody else knows: another
// folder may come to lie there.

/** What else is kept changes all the time. */
const markName = 'made-here'

/** Without links, also where it is not there yet. */
export function placeOf(path: string): string {
  const whole = resolve(path)
  if (existsSync(whole) || dirname(whole) === whole) return realpathSync(whole)
  return join(placeOf(dirname(whole)), basename(whole))
}

/** Gives the folder without links. Throws where it came with the folder and nobody agrees to it; then nothing is made. */
export async function useData(path: string, io: Io, { trust }: TrustOption): Promise<string> {
  const isNew = !existsSync(path) || readdirSync(path).length === 0
  if (isNew) mkdirSync(path, { recursive: true, mode: 0o700 })
  const folder = realpathSync(path)
  const book = bookOf(io.env)
  const mark = textAt(join(folder, markName))
  if (mark !== undefined && book.has(folder, digestOf(mark))) return folder
  if (!isNew) {
    if (trust === true) return folder
    const lines = ['The approvals, grants, events and conversations stored in it are used as your own.']
    const yes = await confirmIn(io)(
      `${fullyEscaped(folder)} contains data that you did not create here. Do you want to use it?`,
      lines,
    )
    if (yes !== true)
      throw new CliError(
        `${fullyEscaped(folder)} contains data that you did not create here; its approvals and grants would be used as your own. ${notAgreed(yes)}, so it is not used`,
        'Delete the folder, pass another one with --data, or add --trust to the command',
      )
  }
  const made = randomUUID()
  writeFileSync(join(folder, markName), made, { mode: 0o600 })
  book.add(folder, digestOf(made), [])
  return folder
}

/** What the book keeps of a mark. */
function digestOf(mark: string): string {
  return `data ${hash('sha256', mark, 'base64url')}`
}

/** Before npm fetches something from this folder. Throws where nobody agrees. */
export async function useNpmSettings(cwd: string, io: Io, { trust }: TrustOption): Promise<void> {
  if (trust === true) return
  for (const { file, text } of settingsAbove(realpathSync(cwd))) {
    const digest = hash('sha256', text, 'base64url')
    const book = bookOf(io.env)
    if (book.has(file, digest)) continue
    const lines = text
      .split(/\r?\n/)
      .filter(line => line.trim() !== '')
      .map(fullyEscaped)
    const question = `${fullyEscaped(file)} sets where npm downloads packages from. Do you approve all of this?`
    const yes = await confirmIn(io)(question, lines)
    if (yes !== true)
      throw new CliError(
        `${fullyEscaped(file)} sets where npm downloads packages from, and is not approved. ${notAgreed(yes)}, so nothing is downloaded`,
        'Read the file. Then add --trust to the command, or run it in another folder',
      )
    book.add(file, digest, lines)
  }
}

/** Which of them npm takes depends on what else lies there: all count. Not the user's own, in the home. */
function settingsAbove(cwd: string): readonly { readonly file: string; readonly text: string }[] {
  const found: { readonly file: string; readonly text: string }[] = []
  for (let folder = cwd; folder !== resolve(homedir()); folder = dirname(folder)) {
    const file = join(folder, '.npmrc')
    const text = textAt(file)
    if (text !== undefined) found.push({ file, text })
    if (dirname(folder) === folder) break
  }
  return found
}
