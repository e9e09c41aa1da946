/** `vivarium completions`: a script that a shell reads once, and that asks this command for words after that. */
import { connect } from '../../client/index.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { knownOffers, type Offers, offersOf, rememberOffers, type SeenCatalog } from '../completing/offer-cache.ts'
import { propose } from '../completing/propose.ts'
import { filesMark, scripts, shells } from '../completing/scripts.ts'
import { optionsFor, targetFor } from '../connecting.ts'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import { listsOf } from '../lists.ts'
import type { Verb } from '../program.ts'
import { lineOf } from '../shell-words.ts'
import { resolveTarget } from '../target.ts'

export const completions: Verb = {
  name: 'completions',
  summary: 'Completions for bash, zsh or fish',
  plain: true,
  declare(command, io) {
    command
      .argument('<shell>', 'bash, zsh or fish')
      .note(
        'Verbs, options, their values and files are proposed, the servers of your config files, and of a server the tools, their\narguments, the resources and prompts: of an address at once, of a program or a file after it was listed or called, for a key starts nothing.',
      )
      .examples([
        ['vivarium completions bash >> ~/.bashrc', 'bash'],
        ['vivarium completions zsh >> ~/.zshrc', 'zsh; or as a file _vivarium on the fpath'],
        ['vivarium completions fish > ~/.config/fish/completions/vivarium.fish', 'fish'],
      ])
      .action(async ({ words: [shell = ''], command: typed = [] }) => {
        if (shell === 'words') return words(typed, io)
        const known = shells.find(each => each === shell)
        if (known === undefined)
          throw new CliError(1, `There are no completions for ${clip(shell)}`, `There are ${shells.join(', ')}`)
        io.output.write(scripts[known])
        return 0
      })
  },
}

/** What a shell asks for: all words of its line, the last one as far as it is typed. */
async function words(typed: readonly string[], io: Io): Promise<number> {
  const line = {
    before: typed.slice(0, -1),
    current: typed.at(-1) ?? '',
    offers: (target: readonly string[]) => offersAt(target, io),
  }
  const { words: found, files } = await propose(line, io)
  for (const word of found) io.output.write(lineOf(word))
  if (files) io.output.write(`${filesMark}\n`)
  return 0
}

/** How long somebody waits after a key. */
const askMs = 2_500
/** How long what an address offered is taken for what it offers. */
const freshMs = 600_000

/** What was seen before; an address is asked where that is not there or too old. A key that is pressed starts no program. */
async function offersAt(target: readonly string[], io: Io): Promise<Offers | undefined> {
  const known = knownOffers(target, io.env)
  const [first = ''] = target
  if (!/^https?:\/\//i.test(first)) return known
  if (known !== undefined && known.at >= Date.now() - freshMs) return known
  const seen = await ask(target, io).catch(() => undefined)
  if (seen === undefined) return known
  rememberOffers(target, seen, io.env)
  return offersOf(seen)
}

async function ask(target: readonly string[], io: Io): Promise<SeenCatalog> {
  const quiet: Io = { ...io, interactive: false }
  const resolved = await resolveTarget(target, quiet)
  const signal = AbortSignal.any([io.signal, AbortSignal.timeout(askMs)])
  await using client = await connect(targetFor(resolved, {}, quiet), {
    ...optionsFor(resolved, { auth: true }, quiet),
    signal,
    timeout: askMs,
  })
  return (await listsOf(client, new Set())).lists
}
