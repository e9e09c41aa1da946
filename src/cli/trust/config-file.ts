/**
 * A config file that was read and is not used yet. It is parsed once: what is shown is what is used, whatever happens to the file in
 * between. Variables are filled in only for whoever has a consent.
 */

import { homedir } from 'node:os'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { shellWord } from '../../core/suggestion.ts'
import { expand, variablesIn } from '../../host/config/entry.ts'
import { type ParsedConfig, type PlacedValue, parseConfig, readParsed, surroundings } from '../../host/config/read.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { textAt } from '../io.ts'
import { fullyEscaped } from '../terminal/text.ts'
import type { Consent } from './consent.ts'

/** What a file to use is made from. */
interface FileParts {
  readonly file: string
  readonly text: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly home?: string
  /** The part of it that holds servers, where that is not the whole. */
  readonly parsed?: ParsedConfig
  /** It is the user's own: it lies where a program of the user keeps its settings, outside of every project. */
  readonly own?: boolean
}

/** A config file that was read, and can be shown and used. */
export type FileToUse = Awaited<ReturnType<typeof fileToUse>>

/** Parses a config file once, for the review and for its use. */
export async function fileToUse(parts: FileParts) {
  const { file, text, env, home = homedir(), own = false } = parts
  const parsed = parts.parsed ?? (await parseConfig(text, file))
  const around = surroundings(file, { env, home })
  const read = new Map<string, string | undefined>()
  const textOnce = (path: string): string | undefined => {
    if (!read.has(path)) read.set(path, textAt(path))
    return read.get(path)
  }
  const review = (): Review =>
    reviewOf(parsed.root, path => {
      const expanded = expand(path, around)
      return 'text' in expanded ? textOnce(resolve(around.folder, expanded.text)) : undefined
    })
  return {
    file,
    text,
    /** The user's own files need no consent. */
    own,
    /** What is shown and used. */
    parsed,
    /** As it is written, with `${VAR}` in its texts. */
    written: await readParsed(parsed, file, { env, home, variables: 'keep' }),
    /** What the file does, for the question about it. */
    review,
    /** The files of variables that it names, with their text; each is read once. */
    envFiles: (): ReadonlyMap<string, string | undefined> => {
      review()
      return read
    },
    /** With its variables filled in. */
    filled: (_: Consent) =>
      readParsed(parsed, file, {
        env,
        home,
        envFile: path => {
          const found = textOnce(path)
          if (found === undefined) throw new TypeError('The entry cannot be used')
          return found
        },
      }),
  }
}

/** What a file does, for whoever is asked about it. */
interface Review {
  /** Empty: the file does nothing at all. */
  readonly lines: readonly string[]
  /** The same in one sentence, with the numbers of things and the names of variables. */
  readonly summary: string
}

/** `envFile` gives the text of a file of variables as an entry names it; undefined where it cannot be read. */
function reviewOf(root: PlacedValue | undefined, envFile: (path: string) => string | undefined): Review {
  const servers = ['mcpServers', 'servers'].flatMap(shape => [...(root?.members?.get(shape)?.members ?? [])])
  const host = [...(root?.members?.get('host')?.members ?? [])]
  const lines = [
    ...servers.flatMap(([name, { value }]) => [
      `server ${JSON.stringify(name)}`,
      ...entryLines(isRecord(value) ? value : {}, envFile).map(line => `  ${line}`),
    ]),
    ...host.map(([name, { value }]) => `host.${name}: ${JSON.stringify(value)}`),
  ]
  return { lines: lines.map(fullyEscaped), summary: fullyEscaped(summaryOf(servers, host)) }
}

/** The members of an entry. */
type Members = Readonly<Record<string, unknown>>

/** Members that hold an address. */
const addresses = ['httpUrl', 'url', 'serverUrl']
/** Members that allow calls without a question. */
const approvals = ['autoApprove', 'alwaysAllow']
/** Members that have a line of their own; the others are shown as they are. */
const told = new Set(['command', 'args', 'cwd', 'env', 'envFile', 'headers', 'disabled', ...addresses, ...approvals])

/** What one server of the file does, a line each. */
function entryLines(entry: Members, envFile: (path: string) => string | undefined): readonly string[] {
  const { command, args, cwd, disabled } = entry
  const variables = [...new Set(textsIn(entry).flatMap(variablesIn))]
  const to = addresses.some(name => entry[name] !== undefined) ? 'sends' : 'passes'
  return [
    ...(disabled === true ? ['is disabled'] : []),
    ...(command === undefined ? [] : [`starts ${commandText(command, args)}`]),
    ...(cwd === undefined ? [] : [`in the folder ${plain(cwd)}`]),
    ...pairsIn(entry['env']).map(([name, value]) => `with the variable ${name}=${plain(value)}`),
    ...envFileLines(entry['envFile'], envFile),
    ...addresses.flatMap(name => (entry[name] === undefined ? [] : [`connects to ${plain(entry[name])}`])),
    ...pairsIn(entry['headers']).map(([name, value]) => `sends the header ${name}: ${plain(value)}`),
    ...(variables.length === 0 ? [] : [`${to} the values of your variables ${variables.join(', ')}`]),
    ...approvals.flatMap(name => (entry[name] === undefined ? [] : [`calls without asking you: ${plain(entry[name])}`])),
    ...Object.entries(entry).flatMap(([name, value]) => (told.has(name) ? [] : [`sets ${name}: ${JSON.stringify(value)}`])),
  ]
}

/** A command as it would be typed. */
function commandText(command: unknown, args: unknown): string {
  const words = [command, ...(Array.isArray(args) ? args : [])]
  const rest = args === undefined || Array.isArray(args) ? '' : ` ${JSON.stringify(args)}`
  return `${words.map(word => shellWord(plain(word))).join(' ')}${rest}`
}

/** The names of the variables that a file brings. */
function envFileLines(path: unknown, read: (path: string) => string | undefined): readonly string[] {
  if (path === undefined) return []
  const text = typeof path === 'string' ? read(path) : undefined
  if (text === undefined) return [`with the variables of the file ${plain(path)}, which does not exist or cannot be opened`]
  const names = Object.keys(parseEnv(text))
  return [`with the variables of the file ${plain(path)}: ${names.join(', ') || 'none'}`]
}

/** What the whole file does, in a sentence. */
function summaryOf(
  servers: readonly (readonly [string, PlacedValue])[],
  host: readonly (readonly [string, PlacedValue])[],
): string {
  const entries = servers.map(([, { value }]) => (isRecord(value) ? value : {}))
  const programs = entries.filter(each => each['command'] !== undefined).length
  const places = entries.filter(each => addresses.some(name => each[name] !== undefined)).length
  const variables = [...new Set([...entries, ...host.map(([, { value }]) => value)].flatMap(textsIn).flatMap(variablesIn))]
  const parts = [
    ...(programs === 0 ? [] : [`starts ${counted(programs, 'program')}`]),
    ...(places === 0 ? [] : [`connects to ${counted(places, 'address', 'addresses')}`]),
    ...(variables.length === 0 ? [] : [`uses the values of your variables ${variables.join(', ')}`]),
    ...(host.length === 0 ? [] : [`sets ${host.map(([name]) => `host.${name}`).join(', ')}`]),
  ]
  return parts.length === 0 ? 'It does nothing' : `It ${parts.join('; it ')}`
}

/** A number with its noun. */
function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

/** Every text inside a value; names of members too, which some fill in as well. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value]
  if (Array.isArray(value)) return value.flatMap(textsIn)
  return isRecord(value) ? Object.entries(value).flatMap(([name, item]) => [name, ...textsIn(item)]) : []
}

/** The members of an object; anything else is shown as it is. */
function pairsIn(value: unknown): readonly (readonly [string, unknown])[] {
  if (value === undefined || value === null) return []
  return isRecord(value) ? Object.entries(value) : [['(no object)', value]]
}

/** A text as it is, anything else as JSON. */
function plain(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing')
}
