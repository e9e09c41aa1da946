/** `vivarium completions`: a script that a shell reads once, and that asks this command for words after that. */
import { connect } from '../../client/index.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { completionScripts, filesMark } from '../completion-scripts.ts'
import { configPlacesOf, configuredFiles } from '../configured-servers.ts'
import { optionsFor, targetFor } from '../connecting.ts'
import { CliError, type Io } from '../io.ts'
import { type Lists, listKinds, listsOf } from '../lists.ts'
import { knownOffers, type Offers, rememberOffers, type Word } from '../offers.ts'
import { shapeOf, type Verb, verbs } from '../program.ts'
import { resolveTarget } from '../target.ts'
import { brief, escaped } from '../terminal/text.ts'

/** The shells that there is a script for. */
const shells = Object.keys(completionScripts) as readonly (keyof typeof completionScripts)[]

/** `vivarium completions`, and `completions words`, which the scripts call. */
export const completions: Verb = (command, io) => {
  command
    .argument('<shell>', 'bash, zsh or fish')
    .note(
      'Tab completes verbs, options and their values, files, the servers of your config files, and the tools, arguments, resources and prompts of a server. A key press never starts a program: list or call a program or file once, and completions know what it offers.',
    )
    .examples([
      ['vivarium completions bash >> ~/.bashrc', 'Install for bash'],
      ['vivarium completions zsh >> ~/.zshrc', 'Install for zsh (or write it to a file _vivarium on the fpath)'],
      ['vivarium completions fish > ~/.config/fish/completions/vivarium.fish', 'Install for fish'],
    ])
    .action(async ({ words: [shell = ''], command: typed = [] }) => {
      if (shell === 'words') return words(typed, io)
      const known = shells.find(each => each === shell)
      if (known === undefined)
        throw new CliError(`There are no completions for ${clip(shell)}`, `Name one of ${shells.join(', ')}`)
      io.output.write(completionScripts[known])
      return 0
    })
}

/** What a shell asks for: all words of its line, the last one as far as it is typed. */
async function words(typed: readonly string[], io: Io): Promise<number> {
  const current = typed.at(-1) ?? ''
  const { words: found, files } = await wordsFor(typed.slice(0, -1), current, io)
  for (const word of harmlessWords(found, current)) io.output.write(lineOf(word))
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
  return seen === undefined ? known : rememberOffers(target, seen, io.env)
}

/** What an address offers, asked without questions to the user. */
async function ask(target: readonly string[], io: Io): Promise<Lists> {
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

// What can stand at the end of a command line: verbs, options and their values, targets, and what a target offers.

/** What can stand at the cursor. */
interface Proposal {
  readonly words: readonly Word[]
  /** Files may stand here, too: those the shell knows best. */
  readonly files: boolean
}

/** What a verb takes. */
type Shape = NonNullable<Awaited<ReturnType<typeof shapeOf>>>
/** One option of a verb. */
type Option = Shape['options'][number]
/** A tool, prompt or resource. */
type Offer = NonNullable<Offers['tools']>[number]

/** Nothing fits. */
const none: Proposal = { words: [], files: false }
/** What servers are mostly started with, proposed behind `--`. */
const programs = ['node', 'npx', 'uvx', 'python3', 'docker', 'bunx', 'deno', 'uv']

/** All words for the place of the cursor, also those that do not begin as typed. `before`: all words before the one that is completed. */
async function wordsFor(before: readonly string[], current: string, io: Io): Promise<Proposal> {
  const at = before.findIndex(word => !word.startsWith('-'))
  const verb = before[at]
  if (verb === undefined) return { words: current.startsWith('-') ? general : [...verbs.map(verbWord), help], files: false }
  if (verb === 'help') return { words: verbs.map(verbWord), files: false }
  const behind = before.slice(at + 1)
  const dashes = behind.indexOf('--')
  if (dashes !== -1) return { words: dashes === behind.length - 1 ? programs.map(word => ({ word })) : [], files: true }
  const shape = await shapeOf(verb, behind[0], io)
  if (shape === undefined) return none
  const { words: given, open } = sorted(behind, shape.options)
  if (open !== undefined) return valuesOf(open, io)
  const [, name, typed] = /^(--[\w-]+)=(.*)$/s.exec(current) ?? []
  if (name !== undefined && typed !== undefined) return inside(name, shape.options)
  if (current.startsWith('-')) return { words: optionWords(shape.options, behind), files: false }
  return argumentWords(verb, shape, given, current, io)
}

/** The options that stand before a verb. */
const general: readonly Word[] = [
  { word: '--help', about: 'Print this help' },
  { word: '--version', about: 'Print the version' },
]
/** The verb that commander itself has. */
const help: Word = { word: 'help', about: 'Print the help of a verb' }
/** A verb, and what it is for. */
const verbWord = ({ name, summary }: (typeof verbs)[number]): Word => ({ word: name, about: summary })

/** The words that are neither options nor their values; and the option whose value comes next. */
function sorted(
  behind: readonly string[],
  options: readonly Option[],
): { readonly words: readonly string[]; readonly open: Option | undefined } {
  const words: string[] = []
  let open: Option | undefined
  for (const word of behind) {
    if (open !== undefined) open = undefined
    else if (word.startsWith('-') && word !== '-') open = options.find(({ name, value }) => name === word && value !== undefined)
    else words.push(word)
  }
  return { words, open }
}

/** The options of a verb; one without a value is not proposed twice. */
function optionWords(options: readonly Option[], behind: readonly string[]): readonly Word[] {
  const fresh = options.filter(({ name, value }) => value !== undefined || !behind.includes(name))
  return [...fresh.map(({ name, about }) => ({ word: name, about })), { word: '--help', about: 'Print this help' }]
}

/** The values of an option: its choices, variables, or files. */
function valuesOf({ value = '', choices }: Option, { env }: Io): Proposal {
  if (choices.length > 0) return { words: choices.map(word => ({ word })), files: false }
  // Variables are given by their names: those that this shell has.
  if (value === 'NAME') return { words: Object.keys(env).map(word => ({ word })), files: false }
  return { words: [], files: ['file', 'folder', 'path', 'target'].includes(value) }
}

/** The values behind `--option=`. */
function inside(name: string, options: readonly Option[]): Proposal {
  const { choices = [] } = options.find(each => each.name === name) ?? {}
  return { words: choices.map(word => ({ word: `${name}=${word}` })), files: false }
}

/** What fits an argument of a verb, by the argument's name. */
async function argumentWords(verb: string, shape: Shape, given: readonly string[], current: string, io: Io): Promise<Proposal> {
  const last = shape.arguments.at(-1)
  const { name } = shape.arguments[given.length] ?? (last?.many === true ? last : { name: undefined })
  const commands = given.length === 0 ? shape.commands.map(each => ({ word: each.name, about: each.about })) : []
  const [target = '', chosen = ''] = given
  const offers = (): Promise<Offers | undefined> => offersAt([target], io)
  switch (name) {
    case 'target':
      return { words: await serverWords(io.env), files: true }
    case 'kind':
      return { words: [...listKinds, 'all'].map(word => ({ word })), files: false }
    case 'shell':
      return { words: shells.map(word => ({ word })), files: false }
    case 'tool':
      return { words: (await offers())?.tools ?? [], files: false }
    case 'uri':
      return { words: (await offers())?.resources ?? [], files: false }
    case 'name':
      return { words: verb === 'prompt' ? ((await offers())?.prompts ?? []) : [], files: false }
    case 'arguments': {
      const found = await offers()
      const known = verb === 'prompt' ? found?.prompts : found?.tools
      const offer = known?.find(({ word }) => word === chosen)
      return { words: pairWords(offer, given.slice(2), current), files: false }
    }
    case undefined:
      return { words: commands, files: false }
    default:
      return { words: commands, files: true }
  }
}

/** `key=` for what is not given yet, and its values where they are few. */
function pairWords(offer: Offer | undefined, given: readonly string[], current: string): readonly Word[] {
  const all = offer?.arguments ?? []
  const [, key] = /^([^=]+)=/.exec(current) ?? []
  if (key !== undefined) return (all.find(({ word }) => word === key)?.values ?? []).map(value => ({ word: `${key}=${value}` }))
  const used = new Set(given.map(word => word.split(/:?=/)[0]))
  return all.filter(({ word }) => !used.has(word)).map(({ word, about }) => ({ word: `${word}=`, about }))
}

/** Names that can stand for a server, with the program that has it where that is needed. */
async function serverWords(env: Io['env']): Promise<readonly Word[]> {
  const found = new Map<string, Set<string>>()
  for (const { source, file } of await configuredFiles(configPlacesOf(env)))
    for (const name of file.written.servers.keys()) found.set(name, (found.get(name) ?? new Set()).add(source))
  return [...found]
    .flatMap(([name, sources]) =>
      [...sources].map(source => ({ word: sources.size === 1 ? name : `${source}:${name}`, about: `configured in ${source}` })),
    )
    .sort((one, two) => (one.word < two.word ? -1 : 1))
}

/** Nothing that is expanded, quoted, or ends a command. */
const harmless = /^[\w.@:/=,+%~-]+$/

/** Those that begin as typed and that no shell would expand, each once. */
function harmlessWords(words: readonly Word[], current: string): readonly Word[] {
  const seen = new Set<string>()
  return words.filter(({ word }) => {
    if (!word.startsWith(current) || !harmless.test(word) || seen.has(word)) return false
    seen.add(word)
    return true
  })
}

/** One line each: the word, and behind a tab what it is. */
function lineOf({ word, about = '' }: Word): string {
  const text = escaped(brief(about, 80))
  return text === '' ? `${word}\n` : `${word}\t${text}\n`
}
