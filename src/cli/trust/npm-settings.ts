/**
 * Files of the folder that tell npm where packages come from (`.npmrc`). A package that is fetched is run: whoever names its registry
 * says what runs here, and may have variables of the shell sent along. So they are asked about like a config file.
 */
import { hash } from 'node:crypto'
import { readFileSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { CliError } from '../exit.ts'
import type { Io } from '../io.ts'
import { fullyEscaped } from '../terminal/text.ts'
import { confirmIn, type TrustOption } from './ask.ts'
import { bookOf } from './book.ts'

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
    if (yes !== true) throw refusal(file, yes === undefined)
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

function refusal(file: string, nobody: boolean): CliError {
  const said = nobody ? 'Nobody can be asked without a terminal' : 'You did not agree'
  return new CliError(
    1,
    `${fullyEscaped(file)} says where npm fetches programs from, and is not trusted. ${said}, so nothing is fetched`,
    'Read the file; then repeat the command with --trust, or from another folder',
  )
}
