/**
 * The one decision about a config file: may it be used. A file that came with a folder says what runs on this machine, whom it
 * speaks with and which secrets it sends, so all of it is shown first, and nothing of it is used before the yes. The yes counts for
 * this file with this content; any other content is asked about anew, with what is new marked.
 */
import { hash } from 'node:crypto'
import { existsSync, realpathSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'
import { type Why, why } from '../../core/why.ts'
import type { HostConfig } from '../../host/config/read.ts'
import type { HostOptions } from '../../host/options.ts'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import type { CommandLike } from '../program.ts'
import { type Confirm, confirmOn } from '../terminal/questions.ts'
import { LineReader } from '../terminal/reader.ts'
import { Screen } from '../terminal/screen.ts'
import { fullyEscaped } from '../terminal/text.ts'
import { bookOf, lineDigest } from './agreements.ts'
import { type FileToUse, fileToUse } from './config-file.ts'

interface TrustOptions {
  /** Undefined: there is nobody to ask. */
  readonly confirm: Confirm
  readonly env: Readonly<Record<string, string | undefined>>
}

declare const agreed: unique symbol
/** A yes to one file as it was read. Only `decide` gives it, and only with it variables are filled in. */
export type Consent = { readonly [agreed]: FileToUse }

/** What the user agreed to, exactly: where the file lies, what stands in it and in the files of variables that it names. */
export function consentDigest(file: FileToUse): string {
  return hash('sha256', JSON.stringify([pathOf(file.file), file.text, [...file.envFiles()]]), 'base64url')
}

export async function decideConsent(file: FileToUse, { confirm, env }: TrustOptions): Promise<Consent | Why> {
  const { lines, summary } = file.review()
  if (lines.length === 0 || file.own || isExample(file.file)) return consent(file)
  const [path, digest] = [pathOf(file.file), consentDigest(file)]
  const book = bookOf(env)
  if (book.has(path, digest)) return consent(file)
  const before = book.last(path)
  const yes = await confirm(question(path, before !== undefined), [...marked(lines, before), `${summary}.`])
  if (yes !== true)
    return why(
      'CONFIG_NOT_TRUSTED',
      'config.trust',
      `${fullyEscaped(file.file)} is not trusted. ${summary}. ${notAgreed(yes)}, so nothing of it is used`,
      'Read the file; then repeat the command with --trust, or run it once in a terminal and answer yes',
    )
  book.add(path, digest, lines)
  return consent(file)
}

/** `--trust`: whoever starts the command says yes to the file as it is now. */
export function trusted(file: FileToUse): Consent {
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
    if (first) return swapped(file)
    const decided = await decideConsent(next, options)
    return 'code' in decided ? decided : undefined
  }
}

function consent(file: FileToUse): Consent {
  return { file } as unknown as Consent
}

function question(path: string, again: boolean): string {
  const said = again ? 'has changed since you agreed to it' : 'is not trusted yet'
  return `${fullyEscaped(path)} ${said}. Do you agree to all of this?`
}

/** What was not agreed to before stands behind a plus. */
function marked(lines: readonly string[], before: ReadonlySet<string> | undefined): readonly string[] {
  if (before === undefined) return lines
  const now = new Set(lines.map(lineDigest))
  const gone = [...before].filter(line => !now.has(line)).length
  const shown = lines.map(line => `${before.has(lineDigest(line)) ? ' ' : '+'} ${line}`)
  return gone === 0
    ? shown
    : [...shown, `- ${gone} ${gone === 1 ? 'line' : 'lines'} of what you agreed to ${gone === 1 ? 'is' : 'are'} gone`]
}

/** Why a question to which the answer was no `true` ends the use of a file. */
export function notAgreed(answer: boolean | undefined): string {
  return answer === undefined ? 'Nobody can be asked without a terminal' : 'You did not agree'
}

function swapped(file: string): Why {
  return why(
    'CONFIG_CHANGED',
    'config.trust',
    `${fullyEscaped(file)} changed after you agreed to it and before it was used, so nothing of it is used`,
    'Start the command again',
  )
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
  let folder = import.meta.dirname
  while (!existsSync(join(folder, 'package.json')) && dirname(folder) !== folder) folder = dirname(folder)
  const examples = join(folder, 'examples')
  return existsSync(examples) && pathOf(file).startsWith(`${realpathSync(examples)}${sep}`)
}

export interface TrustOption {
  readonly trust?: boolean | undefined
}

export function trustOption(command: CommandLike): CommandLike {
  return command.option('--trust', 'Use a config file that you were not asked about: its commands, addresses and variables')
}

/** The file with its variables filled in. Throws where it may not be used. */
export async function useFile(file: FileToUse, io: Io, { trust }: TrustOption): Promise<HostConfig> {
  const decided = trust === true ? trusted(file) : await decideConsent(file, { confirm: confirmIn(io), env: io.env })
  if ('code' in decided) throw new CliError(1, decided.message, decided.fix)
  return file.filled(decided)
}

/** On standard error, so that a result stays a result. */
export function confirmIn(io: Io): Confirm {
  return async (text, lines) => {
    if (!io.interactive) return undefined
    const screen = new Screen({ output: io.errors, env: io.env })
    const reader: LineReader = new LineReader({
      input: io.input,
      output: io.errors,
      screen,
      interactive: true,
      prompt: '',
      interrupted: () => reader.refuse(),
      complete: async () => [],
    })
    try {
      return await confirmOn(screen, reader, text, lines)
    } finally {
      reader.close()
    }
  }
}
