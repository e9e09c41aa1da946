/** What can stand at the end of a command line: verbs, options and their values, targets, and what a target offers. */

import { configPlacesOf, readSource, sourcesOf } from '../configured-servers.ts'
import type { Io } from '../io.ts'
import { listKinds } from '../lists.ts'
import { type OptionShape, shapeOf, type VerbShape } from '../program.ts'
import { harmlessWords, type Word } from '../shell-words.ts'
import { verbs } from '../verbs.ts'
import type { CompletionOffer, Offers } from './offer-cache.ts'

interface Proposal {
  readonly words: readonly Word[]
  /** Files may stand here, too: those the shell knows best. */
  readonly files: boolean
}

interface Line {
  /** All words before the one that is completed, without the name of the program. */
  readonly before: readonly string[]
  /** What is typed of it. */
  readonly current: string
  /** What a target offers, where that is known or quickly found out. */
  readonly offers: (target: readonly string[]) => Promise<Offers | undefined>
}

export async function propose(line: Line, io: Io): Promise<Proposal> {
  const { words, files } = await wordsFor(line, io)
  return { words: harmlessWords(words, line.current), files }
}

const none: Proposal = { words: [], files: false }
const programs = ['node', 'npx', 'uvx', 'python3', 'docker', 'bunx', 'deno', 'uv']

async function wordsFor({ before, current, offers }: Line, io: Io): Promise<Proposal> {
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
  return argumentWords(verb, shape, given, current, offers, io)
}

const general: readonly Word[] = [
  { word: '--help', about: 'Print the help' },
  { word: '--version', about: 'Print the version' },
]
const help: Word = { word: 'help', about: 'The help of a verb' }
const verbWord = ({ name, summary }: (typeof verbs)[number]): Word => ({ word: name, about: summary })

/** The words that are neither options nor their values; and the option whose value comes next. */
function sorted(
  behind: readonly string[],
  options: readonly OptionShape[],
): { readonly words: readonly string[]; readonly open: OptionShape | undefined } {
  const words: string[] = []
  let open: OptionShape | undefined
  for (const word of behind) {
    if (open !== undefined) open = undefined
    else if (word.startsWith('-') && word !== '-') open = options.find(({ name, value }) => name === word && value !== undefined)
    else words.push(word)
  }
  return { words, open }
}

function optionWords(options: readonly OptionShape[], behind: readonly string[]): readonly Word[] {
  const fresh = options.filter(({ name, value }) => value !== undefined || !behind.includes(name))
  return [...fresh.map(({ name, about }) => ({ word: name, about })), { word: '--help', about: 'Print this help' }]
}

function valuesOf({ value = '', choices }: OptionShape, { env }: Io): Proposal {
  if (choices.length > 0) return { words: choices.map(word => ({ word })), files: false }
  // Variables are given by their names: those that this shell has.
  if (value === 'NAME') return { words: Object.keys(env).map(word => ({ word })), files: false }
  return { words: [], files: ['file', 'folder', 'path', 'target'].includes(value) }
}

function inside(name: string, options: readonly OptionShape[]): Proposal {
  const { choices = [] } = options.find(each => each.name === name) ?? {}
  return { words: choices.map(word => ({ word: `${name}=${word}` })), files: false }
}

async function argumentWords(
  verb: string,
  shape: VerbShape,
  given: readonly string[],
  current: string,
  offers: Line['offers'],
  io: Io,
): Promise<Proposal> {
  const last = shape.arguments.at(-1)
  const { name } = shape.arguments[given.length] ?? (last?.many === true ? last : { name: undefined })
  const commands = given.length === 0 ? shape.commands.map(each => ({ word: each.name, about: each.about })) : []
  const [target = '', chosen = ''] = given
  switch (name) {
    case 'target':
      return { words: await serverWords(io.env), files: true }
    case 'kind':
      return { words: [...listKinds, 'all'].map(word => ({ word })), files: false }
    case 'shell':
      return { words: ['bash', 'zsh', 'fish'].map(word => ({ word })), files: false }
    case 'tool':
      return { words: (await offers([target]))?.tools ?? [], files: false }
    case 'uri':
      return { words: (await offers([target]))?.resources ?? [], files: false }
    case 'name':
      return { words: verb === 'prompt' ? ((await offers([target]))?.prompts ?? []) : [], files: false }
    case 'words': {
      const found = await offers([target])
      const known = verb === 'prompt' ? found?.prompts : found?.tools
      return {
        words: pairWords(
          known?.find(({ word }) => word === chosen),
          given.slice(2),
          current,
        ),
        files: false,
      }
    }
    case undefined:
      return { words: commands, files: false }
    default:
      return { words: commands, files: true }
  }
}

/** `key=` for what is not given yet, and its values where they are few. */
function pairWords(offer: CompletionOffer | undefined, given: readonly string[], current: string): readonly Word[] {
  const all = offer?.arguments ?? []
  const [, key] = /^([^=]+)=/.exec(current) ?? []
  if (key !== undefined) return (all.find(({ word }) => word === key)?.values ?? []).map(value => ({ word: `${key}=${value}` }))
  const used = new Set(given.map(word => word.split(/:?=/)[0]))
  return all.filter(({ word }) => !used.has(word)).map(({ word, about }) => ({ word: `${word}=`, about }))
}

/** Names that can stand for a server, with the program that has it where that is needed. */
async function serverWords(env: Io['env']): Promise<readonly Word[]> {
  const places = configPlacesOf(env)
  const found = new Map<string, Set<string>>()
  for (const source of sourcesOf(places)) {
    const config = await readSource(source, places)
    for (const name of config?.written.servers.keys() ?? []) found.set(name, (found.get(name) ?? new Set()).add(source.name))
  }
  return [...found]
    .flatMap(([name, sources]) =>
      [...sources].map(source => ({ word: sources.size === 1 ? name : `${source}:${name}`, about: `a server of ${source}` })),
    )
    .sort((one, two) => (one.word < two.word ? -1 : 1))
}
