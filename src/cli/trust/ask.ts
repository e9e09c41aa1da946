/** The decision as verbs take it: asked on this terminal, said yes to by `--trust`, or refused where there is nobody to ask. */
import type { HostConfig } from '../../host/config/read.ts'
import { CliError } from '../exit.ts'
import type { Io } from '../io.ts'
import type { CommandLike } from '../program.ts'
import { type Confirm, confirmOn } from '../terminal/questions.ts'
import { Reader } from '../terminal/reader.ts'
import { Screen } from '../terminal/screen.ts'
import { decide, trusted } from './decide.ts'
import type { FileToUse } from './file-to-use.ts'

export interface TrustOption {
  readonly trust?: boolean | undefined
}

export function trustOption(command: CommandLike): CommandLike {
  return command.option('--trust', 'Use a config file that you were not asked about: its commands, addresses and variables')
}

/** The file with its variables filled in. Throws where it may not be used. */
export async function useFile(file: FileToUse, io: Io, { trust }: TrustOption): Promise<HostConfig> {
  const decided = trust === true ? trusted(file) : await decide(file, { confirm: confirmIn(io), env: io.env })
  if ('code' in decided) throw new CliError(1, decided.message, decided.fix)
  return file.filled(decided)
}

/** On standard error, so that a result stays a result. */
export function confirmIn(io: Io): Confirm {
  return async (text, lines) => {
    if (!io.interactive) return undefined
    const screen = new Screen({ output: io.errors, env: io.env })
    const reader: Reader = new Reader({
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
