/**
 * What servers were found to offer, kept in the user's cache: a shell that proposes names of tools must not wait for a server, nor
 * start one that was only named. Without the file there are fewer proposals, and nothing else changes.
 */
import { existsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { userFolder } from '../auth/client/user-storage.ts'
import type { Tool } from '../client/index.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { jsonValue } from '../recording/format.ts'
import { propertiesOf } from './arguments.ts'
import { replaceFile, textAt } from './io.ts'
import type { Lists } from './lists.ts'
import { brief } from './terminal/text.ts'

/** A proposal, and in a few words what it is. */
export interface Word {
  readonly word: string
  /** Shown beside the word by shells that can. */
  readonly about?: string | undefined
}

/** A tool, prompt or resource, and its arguments with the values that they can have where the schema lists them. */
interface Offer extends Word {
  readonly arguments?: readonly (Word & { readonly values?: readonly string[] })[]
}

/** What a server offers, as words that can be typed. */
export interface Offers {
  readonly tools?: readonly Offer[]
  readonly prompts?: readonly Offer[]
  readonly resources?: readonly Offer[]
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

/** Keeps what was seen of a server, beside what is known of it; gives the words of it. Of a typed program nothing is looked at. */
export function rememberOffers(target: readonly string[], seen: Lists, env: Env): Offers | undefined {
  const place = placeOf(target)
  if (place === undefined) return undefined
  const offers = offersOf(seen)
  const file = bookIn(env)
  const { [place]: before, ...others } = readBook(file)
  const stored = Object.entries(others)
    .sort(([, one], [, two]) => two.at - one.at)
    .slice(0, mostServers - 1)
  replaceFile(file, JSON.stringify(Object.fromEntries([[place, { ...before, ...offers, at: Date.now() }], ...stored])))
  return offers
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
  return existsSync(path) && statSync(path).isFile() ? path : `${process.cwd()} ${first}`
}

/** The path of the file. */
function bookIn(env: Env): string {
  return join(userFolder(env, 'XDG_CACHE_HOME', '.cache'), 'vivarium', 'offers.json')
}

/** All that is kept, by target; empty where the file cannot be read. */
function readBook(file: string): Readonly<Record<string, Entry>> {
  const isOurs = existsSync(file) && statSync(file).size <= mostBytes
  const value = isOurs ? jsonValue(textAt(file) ?? '') : undefined
  if (!isRecord(value)) return {}
  return Object.fromEntries(Object.entries(value).filter((pair): pair is [string, Entry] => isEntry(pair[1])))
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

/** The words of what a server lists. */
function offersOf({ tools, prompts, resources }: Lists): Offers {
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
function toolOffer({ name, description, inputSchema }: Tool): Offer {
  const members = Object.entries(propertiesOf(inputSchema ?? {})).slice(0, mostArguments)
  return { ...wordOf(name, description), arguments: members.map(([key, schema]) => argumentOf(key, schema)) }
}

/** An argument and its values, by its schema. */
function argumentOf(name: string, schema: unknown): NonNullable<Offer['arguments']>[number] {
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
