/**
 * Which files go into a bundle: those that package.json lists, else those that the entry imports; and the packages it needs at
 * runtime. What looks like a secret is refused, whoever lists it, and no link is followed out of the package.
 */
import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { CliError } from '../errors.ts'
import { looksSecret, patternOf, wantedBy } from './file-patterns.ts'
import { isPackageName, type PackageFacts } from './package-facts.ts'

const mostFiles = 20_000
const mostBytes = 256 * 1024 * 1024

/** Made anew, or only for whoever writes the server. Hidden files are kept where they are, too. */
const left = [
  /^\./,
  /^node_modules$/,
  /\.(mcpb|log|tgz|tsbuildinfo)$/,
  /\.test\.[cm]?[jt]sx?$/,
  /^(test|tests|coverage)$/,
  /^server\.json$/,
]

/** What a bundle has beside the code, where it is there. */
const always = ['package.json', 'README*', 'LICENSE*', 'icon.png']

export interface BundleFiles {
  /** Paths in the archive, and where each lies. */
  readonly files: ReadonlyMap<string, string>
  /** Files of packages that are left out, because they look like secrets. */
  readonly leftOut: readonly string[]
  readonly bytes: number
}

/** `included`: files that the user wants in it by name, whatever they look like. */
export function bundleFiles(facts: PackageFacts, included: readonly string[] = []): BundleFiles {
  const found = new Found()
  const wished = new Set(included.map(path => wishedFile(facts.root, path)))
  const ignored = ignoredIn(facts.root)
  const secrets: string[] = []
  const wanted = wantedBy([...(facts.files ?? importedFiles(facts.root, facts.entry)), ...always, facts.entry])
  walk(facts.root, '', found, (path, name, isFile) => {
    if (isFile && wished.has(path)) return true
    if (ignored(path) || !wanted(path)) return [...wished].some(each => each.startsWith(`${path}/`))
    if (isFile && looksSecret(path)) {
      secrets.push(path)
      return false
    }
    return !left.some(pattern => pattern.test(name))
  })
  if (secrets.length > 0) throw secretsWanted(secrets)
  const leftOut: string[] = []
  for (const { name, folder, takes } of dependenciesOf(facts)) {
    const prefix = `node_modules/${name}`
    walk(folder, prefix, found, (path, file, isFile) => {
      if (/^\.|^node_modules$|\.(map|md|tsbuildinfo)$/.test(file) || !takes(path.slice(prefix.length + 1))) return false
      if (!isFile || wished.has(path) || !looksSecret(path)) return true
      leftOut.push(path)
      return false
    })
  }
  if (!found.files.has(facts.entry))
    throw new CliError(1, `${clip(facts.entry)} is not among the files of the package`, 'Add it to "files" in package.json')
  return { files: found.files, leftOut, bytes: found.bytes }
}

/** A file that was named: it is there, a file, and inside the package even where its folders are links. */
function wishedFile(root: string, path: string): string {
  const plain = path.split('\\').join('/').replace(/^\.\//, '')
  const place = join(root, plain)
  const stat = lstatSync(place, { throwIfNoEntry: false })
  if (stat?.isFile() !== true)
    throw new CliError(1, `--include: there is no file ${clip(path)} in the package`, 'Correct the path')
  if (!realpathSync(place).startsWith(`${realpathSync(root)}${sep}`))
    throw new CliError(1, `--include: ${clip(path)} lies outside of the package`, 'Put it into the package')
  return plain
}

function secretsWanted(paths: readonly string[]): CliError {
  const shown = paths.slice(0, 10).map(path => clip(path, 120))
  const more = paths.length > shown.length ? ` and ${paths.length - shown.length} more` : ''
  return new CliError(
    1,
    `The bundle would hold what looks like secrets: ${shown.join(', ')}${more}. Nothing was written`,
    `Leave them out of "files" or name them in .mcpbignore; one that is no secret: --include ${shown[0]}`,
  )
}

class Found {
  readonly files = new Map<string, string>()
  bytes = 0
}

type Takes = (path: string, name: string, isFile: boolean) => boolean

function walk(folder: string, prefix: string, found: Found, takes: Takes): void {
  for (const name of readdirSync(folder).sort()) {
    const path = prefix === '' ? name : `${prefix}/${name}`
    const place = join(folder, name)
    const stat = lstatSync(place)
    if (stat.isSymbolicLink() || !takes(path, name, stat.isFile())) continue
    if (stat.isDirectory()) walk(place, path, found, takes)
    else if (stat.isFile()) {
      found.bytes += stat.size
      found.files.set(path, place)
    }
    if (found.files.size > mostFiles || found.bytes > mostBytes)
      throw new CliError(
        1,
        `The bundle would have more than ${mostFiles} files or ${mostBytes >> 20} MiB`,
        'Leave some out: name them in .mcpbignore',
      )
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

/** `import … from`, `export … from`, `import '…'`, `import('…')`, `require('…')`, `new URL('…', import.meta.url)`. */
const specifiers = [
  /(?:^|[\s;}])(?:import|export)\s*(?:[\w*\s{},$]*?\bfrom\s*)?(["'])([^"'\n]+)\1/g,
  /\b(?:import|require)\s*\(\s*(["'`])([^"'`\n$]+)\1/g,
  /\bnew\s+URL\s*\(\s*(["'`])(\.[^"'`\n$]*)\1\s*,\s*import\.meta\.url/g,
]
const endings = ['', '.js', '.mjs', '.cjs', '.json', '.node', '/index.js', '/index.cjs']

/** Paths with slashes, seen from the root; the entry is the first. */
function importedFiles(root: string, entry: string): readonly string[] {
  const found = new Set<string>([entry])
  for (const path of found) {
    if (!/\.[cm]?js$/.test(path)) continue
    for (const specifier of specifiersIn(readFileSync(join(root, path), 'utf8'))) {
      const file = fileAt(resolve(root, dirname(path), specifier))
      if (file === undefined) continue
      const inside = relative(root, file).split('\\').join('/')
      if (inside.startsWith('../'))
        throw new CliError(
          1,
          `${clip(path)} imports ${clip(specifier)}, which lies outside of the package`,
          'Put it into the package, or make a dependency of it',
        )
      found.add(inside)
    }
  }
  return [...found]
}

/** Only those that name a file: packages are dependencies. */
function specifiersIn(text: string): readonly string[] {
  return specifiers
    .flatMap(pattern => [...text.matchAll(pattern)].map(([, , name = '']) => name))
    .filter(name => /^\.\.?\//.test(name))
}

/** As Node would find it, and without what only looks like an import: a word in a comment leads to no file. */
function fileAt(path: string): string | undefined {
  return endings.map(ending => `${path}${ending}`).find(file => existsSync(file) && statSync(file).isFile())
}

interface Dependency {
  /** Its place below `node_modules`. */
  readonly name: string
  readonly folder: string
  /** Whether a path inside it belongs to the package. */
  takes(path: string): boolean
}

function dependenciesOf({ root, dependencies }: PackageFacts): readonly Dependency[] {
  const found = new Map<string, Dependency>()
  const open = dependencies.map(name => ({ name, from: root, needed: true }))
  for (let next = open.shift(); next !== undefined; next = open.shift()) {
    const { name, from, needed } = next
    if (!isPackageName(name))
      throw new CliError(
        1,
        `The dependency "${clip(name)}" has a name that npm does not take`,
        'Correct "dependencies" in package.json',
      )
    const folder = installed(name, from)
    if (folder === undefined) {
      if (needed) throw new CliError(1, `The dependency ${clip(name)} is not installed`, 'Run npm install')
      continue
    }
    const place = nested(name, folder, root)
    if (found.has(place)) continue
    const said: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    const of = isRecord(said) ? said : {}
    found.set(place, { name: place, folder, takes: filesOf(name, folder, of['files']) })
    const needs = isRecord(of['dependencies']) ? Object.keys(of['dependencies']) : []
    const wishes = isRecord(of['optionalDependencies']) ? Object.keys(of['optionalDependencies']) : []
    for (const each of [...needs, ...wishes]) open.push({ name: each, from: folder, needed: !wishes.includes(each) })
  }
  return [...found.values()]
}

/** What npm has unpacked is the package. A link leads to a folder that somebody works in, of which only what it publishes counts. */
function filesOf(name: string, folder: string, files: unknown): (path: string) => boolean {
  if (folder.split(sep).includes('node_modules')) return () => true
  if (!Array.isArray(files))
    throw new CliError(
      1,
      `The dependency ${clip(name)} is a link to ${clip(folder, 200)}, whose package.json lists no files`,
      'Add "files" to that package.json, or install the package itself',
    )
  return wantedBy([...files.filter(word => typeof word === 'string'), 'package.json', 'LICENSE*'])
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
  const inside = join(realpathSync(root), 'node_modules')
  return folder.startsWith(`${inside}${sep}`)
    ? folder
        .slice(inside.length + 1)
        .split('\\')
        .join('/')
    : name
}
