/**
 * The folder in which a host keeps everything, where nobody named one: `.vivarium` in the folder that one works in. What is kept there
 * counts as the user's own (answers to questions, grants, events that wait, conversations), so one that came with the folder is asked
 * about like a config file. One that this user had made here is known by its path, and by a mark in it that nobody else knows: another
 * folder may come to lie there.
 */
import { hash, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { CliError } from '../exit.ts'
import type { Io } from '../io.ts'
import { fullyEscaped } from '../terminal/text.ts'
import { confirmIn, type TrustOption } from './ask.ts'
import { bookOf } from './book.ts'

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
    if (yes !== true) throw refusal(folder, yes === undefined)
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

function refusal(folder: string, nobody: boolean): CliError {
  const said = nobody ? 'Nobody can be asked without a terminal' : 'You did not agree'
  return new CliError(
    1,
    `${fullyEscaped(folder)} holds data that you did not make here: answers and grants in it would count as your own. ${said}, so it is not used`,
    'Delete it, name another folder with --data, or repeat the command with --trust',
  )
}
