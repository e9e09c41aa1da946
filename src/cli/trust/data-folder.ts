/**
 * The folder in which a host keeps everything, where nobody named one: `.vivarium` in the folder that one works in. What is kept there
 * counts as the user's own (answers to questions, grants, events that wait, conversations), so one that came with the folder is asked
 * about like a config file. One that this user had made here is known by its path.
 */
import { existsSync, mkdirSync, readdirSync, realpathSync } from 'node:fs'
import { CliError } from '../exit.ts'
import type { Io } from '../io.ts'
import { fullyEscaped } from '../terminal/text.ts'
import { confirmIn, type TrustOption } from './ask.ts'
import { bookOf } from './book.ts'

/** What is kept changes all the time: the yes is one to the place. */
const digest = 'data'

/** Gives the folder without links. Throws where it came with the folder and nobody agrees to it; then nothing is made. */
export async function useData(path: string, io: Io, { trust }: TrustOption): Promise<string> {
  const isNew = !existsSync(path) || readdirSync(path).length === 0
  if (isNew) mkdirSync(path, { recursive: true, mode: 0o700 })
  const folder = realpathSync(path)
  const book = bookOf(io.env)
  if (book.has(folder, digest)) return folder
  if (!isNew) {
    if (trust === true) return folder
    const lines = ['Answers, grants, events and conversations that are kept in it count as your own.']
    const yes = await confirmIn(io)(
      `${fullyEscaped(folder)} holds data that you did not make here. Do you agree to use it?`,
      lines,
    )
    if (yes !== true) throw refusal(folder, yes === undefined)
  }
  book.add(folder, digest, [])
  return folder
}

function refusal(folder: string, nobody: boolean): CliError {
  const said = nobody ? 'Nobody can be asked without a terminal' : 'You did not agree'
  return new CliError(
    1,
    `${fullyEscaped(folder)} holds data that you did not make here: answers and grants in it would count as your own. ${said}, so it is not used`,
    'Delete it, name another folder with --data, or repeat the command with --trust',
  )
}
