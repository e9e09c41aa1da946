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
import type { FileToUse } from './trust/file-to-use.ts'

interface Candidate {
  readonly source: string
  readonly file: FileToUse
}

/** Fills in the variables of a file that may be used; throws for any other. */
export type UseFile = (file: FileToUse) => Promise<HostConfig>

/** Undefined: no file knows the name. Throws where several know it differently, and where the one that does has a mistake. */
export async function findNamed(
  word: string,
  places: Places,
  file: string | undefined,
  use: UseFile,
): Promise<Resolved | undefined> {
  const [, source, own] = /^([a-z-]+):(.+)$/.exec(word) ?? []
  if (file !== undefined) {
    const named = await readFileNamed(file, places)
    const again = `${shellWord(clip(word))} --config ${shellWord(clip(file, 200))}`
    const found = pick(word, [{ source: file, file: named }], places)
    return found === undefined ? fail(word, file, named.written) : resolved(found, word, again, await use(found.file))
  }
  const all = await candidates(places)
  const exact = pick(word, all, places)
  if (exact !== undefined) return resolved(exact, word, shellWord(clip(word)), await use(exact.file))
  if (source === undefined || own === undefined) return undefined
  const found = pick(
    own,
    all.filter(candidate => candidate.source === source),
    places,
  )
  return found && resolved(found, own, shellWord(clip(word)), await use(found.file))
}

async function candidates(places: Places): Promise<readonly Candidate[]> {
  const found: Candidate[] = []
  for (const each of sourcesOf(places)) {
    const file = await readSource(each, places)
    if (file !== undefined) found.push({ source: each.name, file })
  }
  return found
}

/** The servers of all config files, by name. */
export async function knownNames(places: Places): Promise<readonly string[]> {
  const all = await candidates(places)
  return [...new Set(all.flatMap(({ file: { written } }) => [...written.servers.keys(), ...written.refused.keys()]))]
}

async function readFileNamed(file: string, places: Places): Promise<FileToUse> {
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

/** The nearest file that knows the name, by what is written there: nothing is filled in for those that are not used. */
function pick(name: string, found: readonly Candidate[], places: Places): Candidate | undefined {
  const knowing = found.filter(({ file: { written } }) => written.servers.has(name) || written.refused.has(name))
  const different = new Set(knowing.map(({ file }) => file.written.servers.get(name)?.digest))
  if (different.size > 1) throw ambiguous(name, knowing, places)
  return knowing[0]
}

/** Two files of one program cannot be told apart by its name: there the file is named. */
function ambiguous(name: string, knowing: readonly Candidate[], { cwd }: Places): CliError {
  const sources = knowing.map(({ source }) => source)
  const ways = knowing.map(({ source, file: { file } }) =>
    sources.indexOf(source) === sources.lastIndexOf(source)
      ? `${source}:${name}`
      : `${name} --config ${relative(cwd, file).startsWith('..') ? file : relative(cwd, file)}`,
  )
  return new CliError(1, `Several programs have another server called ${quoted(name)}`, `Say which: ${ways.join(' · ')}`)
}

/** `again` is how it is named again. */
function resolved({ source }: Candidate, name: string, again: string, config: HostConfig): Resolved {
  const server = config.servers.get(name)
  if (server !== undefined) return targetOf(server, source, again, config.file)
  const why = config.refused.get(name)
  throw new CliError(1, `${config.file}: ${why?.message}`, why?.fix)
}

function targetOf(
  { name, target, headers, timeoutMs, startTimeoutMs }: ConfiguredServer,
  source: string,
  again: string,
  file: string,
): Resolved {
  return {
    folder: dirname(resolve(file)),
    label: `${clip(name)} (${clip(source)})`,
    again,
    target,
    options: {
      ...(headers !== undefined && { headers }),
      ...(timeoutMs !== undefined && { timeout: timeoutMs }),
      ...(startTimeoutMs !== undefined && { startTimeout: startTimeoutMs }),
    },
    close: async () => {},
  }
}
