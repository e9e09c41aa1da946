/**
 * What servers were found to offer, kept in the user's cache: a shell that proposes names of tools must not wait for a server, nor
 * start one that was only named. Without the file there are fewer proposals, and nothing else changes.
 */
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { userFolder } from '../auth/client/user-storage.ts'
import type { Prompt, Resource, Tool } from '../client/index.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { propertiesOf } from './arguments.ts'
import { configPlacesOf, configuredFiles } from './configured-servers.ts'
import type { Io } from './io.ts'
import { listKinds } from './lists.ts'
import { type OptionShape, shapeOf, type VerbShape, verbs } from './program.ts'
import { brief, escaped } from './terminal/text.ts'

/** A word, and those that may follow it. */
interface CompletionOffer extends Word {
  /** Of a tool or a prompt. */
  readonly arguments?: readonly Argument[]
}

/** An argument of a tool or prompt, with the values that it can have where they are few. */
interface Argument extends Word {
  /** All that it can be, where the schema lists them. */
  readonly values?: readonly string[]
}

/** What a server offers, as words that can be typed. */
export interface Offers {
  readonly tools?: readonly CompletionOffer[]
  readonly prompts?: readonly CompletionOffer[]
  readonly resources?: readonly CompletionOffer[]
}

/** What is kept of one server. */
interface Entry extends Offers {
  /** When it was seen, in milliseconds since the epoch. */
  readonly at: number
}

/** Bounds of the file, so that it stays quick to read: the oldest servers are forgotten. */
const mostServers = 64
/** Of each kind, of one server. */
const mostOffers = 200
/** Of one tool or prompt, and values of one argument. */
const mostArguments = 40
/** A larger file is not ours, and is not read. */
const mostBytes = 4 * 1024 * 1024

/** The variables that say where the cache of the user lies. */
type Env = Readonly<Record<string, string | undefined>>

/** Keeps what was seen of a server, beside what is known of it. */
export function rememberOffers(target: readonly string[], seen: SeenCatalog, env: Env, now = Date.now()): void {
  const place = placeOf(target)
  if (place === undefined) return
  const file = bookIn(env)
  const { [place]: before, ...others } = readBook(file)
  const entry = { ...before, ...offersOf(seen), at: now }
  const kept = Object.entries(others)
    .sort(([, one], [, two]) => two.at - one.at)
    .slice(0, mostServers - 1)
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    writeFileSync(`${file}.${process.pid}`, JSON.stringify(Object.fromEntries([[place, entry], ...kept])), { mode: 0o600 })
    renameSync(`${file}.${process.pid}`, file)
  } catch {
    // A cache that cannot be written is none.
  }
}

/** What is known of a target, and whether it is from after its file was changed last. */
export function knownOffers(target: readonly string[], env: Env): (Offers & { readonly at: number }) | undefined {
  const place = placeOf(target)
  return place === undefined ? undefined : readBook(bookIn(env))[place]
}

/** An address and a file stand for themselves, a name for what the configs here mean by it. A typed program has no name. */
function placeOf([first]: readonly string[]): string | undefined {
  if (first === undefined || first === '--') return undefined
  if (/^(https?|wss?):\/\//i.test(first)) return first
  const path = resolve(first)
  try {
    if (statSync(path).isFile()) return path
  } catch {
    // It is no file.
  }
  return `${process.cwd()} ${first}`
}

/** The path of the file. */
function bookIn(env: Env): string {
  return join(userFolder(env, 'XDG_CACHE_HOME', '.cache'), 'vivarium', 'offers.json')
}

/** All that is kept, by target; empty where the file cannot be read. */
function readBook(file: string): Readonly<Record<string, Entry>> {
  try {
    if (statSync(file).size > mostBytes) return {}
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'))
    if (!isRecord(value)) return {}
    return Object.fromEntries(Object.entries(value).filter((pair): pair is [string, Entry] => isEntry(pair[1])))
  } catch {
    return {}
  }
}

/** Our own file, but anything may have written over it. */
function isEntry(value: unknown): value is Entry {
  if (!isRecord(value) || typeof value['at'] !== 'number') return false
  return ['tools', 'prompts', 'resources'].every(
    kind => value[kind] === undefined || (Array.isArray(value[kind]) && value[kind].every(isOffer)),
  )
}

/** Whether a value of the file is a word with arguments. */
function isOffer(value: unknown): boolean {
  if (!isRecord(value) || typeof value['word'] !== 'string') return false
  const { arguments: given } = value
  return given === undefined || (Array.isArray(given) && given.every(each => isRecord(each) && typeof each['word'] === 'string'))
}

/** Lists of a server, as far as they were fetched. */
export interface SeenCatalog {
  readonly tools?: readonly Tool[] | undefined
  readonly prompts?: readonly Prompt[] | undefined
  readonly resources?: readonly Resource[] | undefined
}

/** The words of what a server lists. */
export function offersOf({ tools, prompts, resources }: SeenCatalog): Offers {
  return {
    ...(tools && { tools: tools.slice(0, mostOffers).map(toolOffer) }),
    ...(prompts && {
      prompts: prompts.slice(0, mostOffers).map(({ name, description, arguments: given = [] }) => ({
        ...wordOf(name, description),
        arguments: given.slice(0, mostArguments).map(each => wordOf(each.name, each.description)),
      })),
    }),
    ...(resources && { resources: resources.slice(0, mostOffers).map(({ uri, name }) => wordOf(uri, name)) }),
  }
}

/** A tool and its arguments, by its input schema. */
function toolOffer({ name, description, inputSchema }: Tool): CompletionOffer {
  const members = Object.entries(propertiesOf(inputSchema ?? {})).slice(0, mostArguments)
  return { ...wordOf(name, description), arguments: members.map(([key, schema]) => argumentOf(key, schema)) }
}

/** An argument and its values, by its schema. */
function argumentOf(name: string, schema: unknown): Argument {
  if (!isRecord(schema)) return { word: name }
  const { description, type } = schema
  const listed = Array.isArray(schema['enum']) ? schema['enum'].filter(each => typeof each !== 'object').map(String) : []
  const values = type === 'boolean' ? ['true', 'false'] : listed.slice(0, mostArguments)
  return { ...wordOf(name, typeof description === 'string' ? description : undefined), ...(values.length > 0 && { values }) }
}

/** A word, and in a line what it is. */
function wordOf(word: string, about: string | undefined): Word {
  const text = about === undefined ? '' : brief(about, 80)
  return { word, ...(text !== '' && { about: text }) }
}

// What can stand at the end of a command line: verbs, options and their values, targets, and what a target offers.

/** What can stand at the cursor. */
interface Proposal {
  readonly words: readonly Word[]
  /** Files may stand here, too: those the shell knows best. */
  readonly files: boolean
}

/** A command line up to the cursor. */
interface Line {
  /** All words before the one that is completed, without the name of the program. */
  readonly before: readonly string[]
  /** What is typed of it. */
  readonly current: string
  /** What a target offers, where that is known or quickly found out. */
  readonly offers: (target: readonly string[]) => Promise<Offers | undefined>
}

/** The words that fit the line, without any that a shell would not take as they are. */
export async function propose(line: Line, io: Io): Promise<Proposal> {
  const { words, files } = await wordsFor(line, io)
  return { words: harmlessWords(words, line.current), files }
}

/** Nothing fits. */
const none: Proposal = { words: [], files: false }
/** What servers are mostly started with, proposed behind `--`. */
const programs = ['node', 'npx', 'uvx', 'python3', 'docker', 'bunx', 'deno', 'uv']

/** All words for the place of the cursor, also those that do not begin as typed. */
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

/** The options that stand before a verb. */
const general: readonly Word[] = [
  { word: '--help', about: 'Print the help' },
  { word: '--version', about: 'Print the version' },
]
/** The verb that commander itself has. */
const help: Word = { word: 'help', about: 'The help of a verb' }
/** A verb, and what it is for. */
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

/** The options of a verb; one without a value is not proposed twice. */
function optionWords(options: readonly OptionShape[], behind: readonly string[]): readonly Word[] {
  const fresh = options.filter(({ name, value }) => value !== undefined || !behind.includes(name))
  return [...fresh.map(({ name, about }) => ({ word: name, about })), { word: '--help', about: 'Print this help' }]
}

/** The values of an option: its choices, variables, or files. */
function valuesOf({ value = '', choices }: OptionShape, { env }: Io): Proposal {
  if (choices.length > 0) return { words: choices.map(word => ({ word })), files: false }
  // Variables are given by their names: those that this shell has.
  if (value === 'NAME') return { words: Object.keys(env).map(word => ({ word })), files: false }
  return { words: [], files: ['file', 'folder', 'path', 'target'].includes(value) }
}

/** The values behind `--option=`. */
function inside(name: string, options: readonly OptionShape[]): Proposal {
  const { choices = [] } = options.find(each => each.name === name) ?? {}
  return { words: choices.map(word => ({ word: `${name}=${word}` })), files: false }
}

/** What fits an argument of a verb, by the argument's name. */
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
  const found = new Map<string, Set<string>>()
  for (const { source, file } of await configuredFiles(configPlacesOf(env)))
    for (const name of file.written.servers.keys()) found.set(name, (found.get(name) ?? new Set()).add(source))
  return [...found]
    .flatMap(([name, sources]) =>
      [...sources].map(source => ({ word: sources.size === 1 ? name : `${source}:${name}`, about: `a server of ${source}` })),
    )
    .sort((one, two) => (one.word < two.word ? -1 : 1))
}

/** A proposal, and in a few words what it is. */
interface Word {
  readonly word: string
  /** Shown beside the word by shells that can. */
  readonly about?: string | undefined
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
export function lineOf({ word, about = '' }: Word): string {
  const text = escaped(brief(about, 80))
  return text === '' ? `${word}\n` : `${word}\t${text}\n`
}
