/**
 * The folder in which a host keeps everything, where nobody named one: `.vivarium` in the folder that one works in. What is kept there
 * counts as the user's own (answers to questions, grants, events that wait, conversations), so one that came with the folder is asked
 * about like a config file. One that this user had made here is known by its path, and by a mark in it that nobody else knows: another
 * folder may come to lie there.
 */
import { hash, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import { fullyEscaped } from '../terminal/text.ts'
import { bookOf, confirmIn, notAgreed, type TrustOption } from './consent.ts'

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
  const mark = markIn(folder)
  if (mark !== undefined && book.has(folder, digestOf(mark))) return folder
  if (!isNew) {
    if (trust === true) return folder
    const lines = ['Answers, grants, events and conversations that are kept in it count as your own.']
    const yes = await confirmIn(io)(
      `${fullyEscaped(folder)} holds data that you did not make here. Do you agree to use it?`,
      lines,
    )
    if (yes !== true)
      throw new CliError(
        1,
        `${fullyEscaped(folder)} holds data that you did not make here: answers and grants in it would count as your own. ${notAgreed(yes)}, so it is not used`,
        'Delete it, name another folder with --data, or repeat the command with --trust',
      )
  }
  const made = randomUUID()
  writeFileSync(join(folder, markName), made, { mode: 0o600 })
  book.add(folder, digestOf(made), [])
  return folder
}

function digestOf(mark: string): string {
  return `data ${hash('sha256', mark, 'base64url')}`
}

function markIn(folder: string): string | undefined {
  try {
    return readFileSync(join(folder, markName), 'utf8')
  } catch {
    return undefined
  }
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
    const question = `${fullyEscaped(file)} says where npm fetches programs from. Do you agree to all of this?`
    const yes = await confirmIn(io)(question, lines)
    if (yes !== true)
      throw new CliError(
        1,
        `${fullyEscaped(file)} says where npm fetches programs from, and is not trusted. ${notAgreed(yes)}, so nothing is fetched`,
        'Read the file; then repeat the command with --trust, or from another folder',
      )
    book.add(file, digest, lines)
  }
}

/** Which of them npm takes depends on what else lies there: all count. Not the user's own, in the home. */
function settingsAbove(cwd: string): readonly { readonly file: string; readonly text: string }[] {
  const found: { readonly file: string; readonly text: string }[] = []
  for (let folder = cwd; folder !== resolve(homedir()); folder = dirname(folder)) {
    const file = join(folder, '.npmrc')
    try {
      found.push({ file, text: readFileSync(file, 'utf8') })
    } catch {
      // There is none.
    }
    if (dirname(folder) === folder) break
  }
  return found
}
