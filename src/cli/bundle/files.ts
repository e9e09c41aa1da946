/** Which files go into a bundle: those of the package, and what it needs at runtime. Never what may hold secrets, nor links out of it. */
import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { CliError } from '../exit.ts'
import type { PackageFacts } from './facts.ts'

const mostFiles = 20_000
const mostBytes = 256 * 1024 * 1024

/** Hidden files hold keys and histories; the others are made anew, or are only for whoever writes the server. */
const left = [
  /^\./,
  /^node_modules$/,
  /\.(mcpb|tape|log|tgz|tsbuildinfo)$/,
  /\.test\.[cm]?[jt]sx?$/,
  /^(test|tests|coverage)$/,
  /^server\.json$/,
]

/** Paths in the archive, and where each lies. */
export function bundleFiles(facts: PackageFacts): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  const count = { bytes: 0 }
  const ignored = ignoredIn(facts.root)
  const wanted = wantedOf(facts)
  walk(facts.root, '', found, count, (path, name) => {
    if (left.some(pattern => pattern.test(name)) || ignored(path)) return false
    return wanted(path)
  })
  for (const [name, folder] of dependenciesOf(facts))
    walk(folder, `node_modules/${name}`, found, count, (_, file) => !/^\.|^node_modules$|\.(map|md|tsbuildinfo)$/.test(file))
  if (!found.has(facts.entry))
    throw new CliError(1, `${clip(facts.entry)} is not among the files of the package`, 'Add it to "files" in package.json')
  return found
}

type Takes = (path: string, name: string) => boolean

function walk(folder: string, prefix: string, found: Map<string, string>, count: { bytes: number }, takes: Takes): void {
  for (const name of readdirSync(folder).sort()) {
    const path = prefix === '' ? name : `${prefix}/${name}`
    const place = join(folder, name)
    const stat = lstatSync(place)
    if (stat.isSymbolicLink() || !takes(path, name)) continue
    if (stat.isDirectory()) walk(place, path, found, count, takes)
    else if (stat.isFile()) {
      count.bytes += stat.size
      found.set(path, place)
    }
    if (found.size > mostFiles || count.bytes > mostBytes)
      throw new CliError(
        1,
        `The bundle would have more than ${mostFiles} files or ${mostBytes >> 20} MiB`,
        'Leave some out: name them in .mcpbignore',
      )
  }
}

/** Where package.json lists its files, those; a folder stands for all in it. */
function wantedOf({ files, entry }: PackageFacts): (path: string) => boolean {
  if (files === undefined) return () => true
  const always = ['package.json', 'manifest.json', 'README*', 'LICENSE*', 'icon.png', entry]
  const patterns = [...files.filter(word => !word.startsWith('!')), ...always].map(patternOf)
  const without = files.filter(word => word.startsWith('!')).map(word => patternOf(word.slice(1)))
  return path => {
    if (without.some(({ inside }) => inside.test(path))) return false
    return patterns.some(({ inside, above }) => inside.test(path) || above(path))
  }
}

function ignoredIn(root: string): (path: string) => boolean {
  const file = join(root, '.mcpbignore')
  if (!existsSync(file)) return () => false
  const lines = readFileSync(file, 'utf8').split('\n')
  const patterns = lines
    .map(line => line.trim())
    .filter(line => line !== '' && !line.startsWith('#'))
    .map(patternOf)
  // A name without a slash is meant wherever it stands.
  return path =>
    patterns.some(({ inside, anywhere }) => inside.test(path) || (anywhere && inside.test(path.split('/').at(-1) ?? '')))
}

interface Pattern {
  /** Matches it and all below it. */
  readonly inside: RegExp
  /** Whether a path is a folder on the way to it. */
  readonly above: (path: string) => boolean
  readonly anywhere: boolean
}

function patternOf(word: string): Pattern {
  const plain = word.replace(/^\.?\//, '').replace(/\/$/, '')
  const source = plain
    .split('/')
    .map(part =>
      part === '**'
        ? '.*'
        : part
            .replace(/[.+^${}()|[\]\\]/g, '\\$&')
            .replace(/\*/g, '[^/]*')
            .replace(/\?/g, '[^/]'),
    )
    .join('/')
  const steps = plain.split('/')
  const above = (path: string): boolean => {
    const parts = path.split('/')
    return parts.length < steps.length && parts.every((part, at) => steps[at] === part || /[*?]/.test(steps[at] ?? ''))
  }
  return { inside: new RegExp(`^${source.replaceAll('.*/', '(?:.*/)?')}(?:/.*)?$`), above, anywhere: !plain.includes('/') }
}

/** The packages that it needs at runtime and what those need, each found as Node would find it. */
function dependenciesOf({ root, dependencies }: PackageFacts): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  const open = dependencies.map(name => ({ name, from: root, needed: true }))
  for (let next = open.shift(); next !== undefined; next = open.shift()) {
    const folder = installed(next.name, next.from)
    if (folder === undefined) {
      if (next.needed) throw new CliError(1, `The dependency ${clip(next.name)} is not installed`, 'Run npm install')
      continue
    }
    const place = nested(next.name, folder, root)
    if (found.has(place)) continue
    found.set(place, folder)
    const said: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    const needs = isRecord(said) && isRecord(said['dependencies']) ? Object.keys(said['dependencies']) : []
    const wishes = isRecord(said) && isRecord(said['optionalDependencies']) ? Object.keys(said['optionalDependencies']) : []
    for (const name of [...needs, ...wishes]) open.push({ name, from: folder, needed: !wishes.includes(name) })
  }
  return found
}

function installed(name: string, from: string): string | undefined {
  for (let at = from; ; at = dirname(at)) {
    const place = join(at, 'node_modules', name)
    if (existsSync(join(place, 'package.json'))) return realpathSync(place)
    if (dirname(at) === at) return undefined
  }
}

/** A package within another stays there, because it is another version. */
function nested(name: string, folder: string, root: string): string {
  const inside = join(root, 'node_modules')
  return folder.startsWith(`${inside}/`)
    ? folder
        .slice(inside.length + 1)
        .split('\\')
        .join('/')
    : name
}
