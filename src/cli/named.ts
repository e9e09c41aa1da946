/** A server by the name it has in a config file: `notes`, or `cursor:notes` where several programs have one. */
import { dirname, relative, resolve } from 'node:path'
import { quoted } from '../core/why.ts'
import type { ConfiguredServer, HostConfig } from '../host/config/read.ts'
import { clip } from '../jsonrpc/limits.ts'
import { CliError } from './exit.ts'
import { nearest } from './nearest.ts'
import { shellWord } from './shell.ts'
import { type Places, readNamed, readSource, sourcesOf } from './sources.ts'
import type { Resolved } from './target.ts'

interface Candidate {
  readonly source: string
  readonly config: HostConfig
}

/** Undefined: no file knows the name. Throws where several know it differently, and where the one that does has a mistake. */
export async function findNamed(word: string, places: Places, file: string | undefined): Promise<Resolved | undefined> {
  const [, source, own] = /^([a-z-]+):(.+)$/.exec(word) ?? []
  if (file !== undefined) {
    const config = await readFileNamed(file, places)
    const again = `${shellWord(clip(word))} --config ${shellWord(clip(file, 200))}`
    return pick(word, [{ source: file, config }], places, again) ?? fail(word, file, config)
  }
  const found = await candidates(places)
  const exact = pick(word, found, places)
  if (exact !== undefined || source === undefined || own === undefined) return exact
  return pick(
    own,
    found.filter(candidate => candidate.source === source),
    places,
    shellWord(clip(word)),
  )
}

async function candidates(places: Places): Promise<readonly Candidate[]> {
  const found: Candidate[] = []
  for (const each of sourcesOf(places)) {
    const config = await readSource(each, places)
    if (config !== undefined) found.push({ source: each.name, config })
  }
  return found
}

/** The servers of all config files, by name. */
export async function knownNames(places: Places): Promise<readonly string[]> {
  return [...new Set((await candidates(places)).flatMap(({ config }) => [...config.servers.keys(), ...config.refused.keys()]))]
}

async function readFileNamed(file: string, places: Places): Promise<HostConfig> {
  try {
    return await readNamed(file, places)
  } catch (error) {
    throw new CliError(1, `The config ${clip(file)} cannot be read`, 'Correct the path', { cause: error })
  }
}

function fail(word: string, file: string, { servers, faults }: HostConfig): never {
  const [fault] = faults
  if (servers.size === 0 && fault !== undefined)
    throw new CliError(1, `${clip(file)}:${fault.line}: ${fault.why.message}`, fault.why.fix)
  const near = nearest(word, [...servers.keys()])
  throw new CliError(
    1,
    `${clip(file)} has no server ${quoted(word)}`,
    near.length > 0
      ? `Did you mean ${near.map(each => clip(each)).join(' or ')}?`
      : `It has ${[...servers.keys()].map(each => clip(each)).join(', ')}`,
  )
}

/** `again` is how it is named again. */
function pick(name: string, found: readonly Candidate[], places: Places, again = shellWord(clip(name))): Resolved | undefined {
  const knowing = found.filter(({ config }) => config.servers.has(name) || config.refused.has(name))
  const [first] = knowing
  if (first === undefined) return undefined
  const different = new Set(knowing.map(({ config }) => config.servers.get(name)?.digest))
  if (different.size > 1) throw ambiguous(name, knowing, places)
  const server = first.config.servers.get(name)
  if (server !== undefined) return resolved(first, again, server)
  const why = first.config.refused.get(name)
  throw new CliError(1, `${first.config.file}: ${why?.message}`, why?.fix)
}

/** Two files of one program cannot be told apart by its name: there the file is named. */
function ambiguous(name: string, knowing: readonly Candidate[], { cwd }: Places): CliError {
  const sources = knowing.map(({ source }) => source)
  const ways = knowing.map(({ source, config }) =>
    sources.indexOf(source) === sources.lastIndexOf(source)
      ? `${source}:${name}`
      : `${name} --config ${relative(cwd, config.file).startsWith('..') ? config.file : relative(cwd, config.file)}`,
  )
  return new CliError(1, `Several programs have another server called ${quoted(name)}`, `Say which: ${ways.join(' · ')}`)
}

function resolved(
  { source, config }: Candidate,
  again: string,
  { name, target, headers, timeoutMs }: ConfiguredServer,
): Resolved {
  return {
    folder: dirname(resolve(config.file)),
    label: `${clip(name)} (${clip(source)})`,
    again,
    target,
    options: { ...(headers !== undefined && { headers }), ...(timeoutMs !== undefined && { timeout: timeoutMs }) },
    close: async () => {},
  }
}
