/**
 * What servers were found to offer, kept in the user's cache: a shell that proposes names of tools must not wait for a server, nor
 * start one that was only named. Without the file there are fewer proposals, and nothing else changes.
 */

import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { userFolder } from '../../auth/client/user-storage.ts'
import type { Prompt, Resource, Tool } from '../../client/index.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Word } from '../shell-words.ts'
import { propertiesOf } from '../signature.ts'
import { brief } from '../terminal/text.ts'

/** A word, and those that may follow it. */
export interface CompletionOffer extends Word {
  readonly arguments?: readonly Argument[]
}

interface Argument extends Word {
  readonly values?: readonly string[]
}

export interface Offers {
  readonly tools?: readonly CompletionOffer[]
  readonly prompts?: readonly CompletionOffer[]
  readonly resources?: readonly CompletionOffer[]
}

interface Entry extends Offers {
  readonly at: number
}

const mostServers = 64
const mostOffers = 200
const mostArguments = 40
const mostBytes = 4 * 1024 * 1024

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

function bookIn(env: Env): string {
  return join(userFolder(env, 'XDG_CACHE_HOME', '.cache'), 'vivarium', 'offers.json')
}

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

function isOffer(value: unknown): boolean {
  if (!isRecord(value) || typeof value['word'] !== 'string') return false
  const { arguments: given } = value
  return given === undefined || (Array.isArray(given) && given.every(each => isRecord(each) && typeof each['word'] === 'string'))
}

export interface SeenCatalog {
  readonly tools?: readonly Tool[] | undefined
  readonly prompts?: readonly Prompt[] | undefined
  readonly resources?: readonly Resource[] | undefined
}

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

function toolOffer({ name, description, inputSchema }: Tool): CompletionOffer {
  const members = Object.entries(propertiesOf(inputSchema ?? {})).slice(0, mostArguments)
  return { ...wordOf(name, description), arguments: members.map(([key, schema]) => argumentOf(key, schema)) }
}

function argumentOf(name: string, schema: unknown): Argument {
  if (!isRecord(schema)) return { word: name }
  const { description, type } = schema
  const listed = Array.isArray(schema['enum']) ? schema['enum'].filter(each => typeof each !== 'object').map(String) : []
  const values = type === 'boolean' ? ['true', 'false'] : listed.slice(0, mostArguments)
  return { ...wordOf(name, typeof description === 'string' ? description : undefined), ...(values.length > 0 && { values }) }
}

function wordOf(word: string, about: string | undefined): Word {
  const text = about === undefined ? '' : brief(about, 80)
  return { word, ...(text !== '' && { about: text }) }
}
