/**
 * Which files go into a bundle: those that package.json lists, else those that the entry imports; and the packages it needs at
 * runtime. What looks like a secret is refused, whoever lists it, and no link is followed out of the package.
 */
import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { CliError } from '../io.ts'
import { foldersFrom, packageIn } from '../own-package.ts'
import { isPackageName, type PackageFacts } from './package-facts.ts'

/** A bundle beyond these limits is most likely one that packs too much by mistake. */
const mostFiles = 20_000
/** Of all files together, before they are compressed. */
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

/** What a bundle is made of. */
export type BundleFiles = ReturnType<typeof bundleFiles>

/** `included`: files that the user wants in it by name, whatever they look like. */
export function bundleFiles(facts: PackageFacts, included: readonly string[] = []) {
  /** Paths in the archive, and where each lies; and the bytes of all together, before they are compressed. */
  const found = { files: new Map<string, string>(), bytes: 0 }
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
  /** Files of packages that look like secrets. */
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
    throw new CliError(`"files" in package.json does not include ${clip(facts.entry)}`, `Add ${clip(facts.entry)} to "files"`)
  return { ...found, leftOut }
}

/** A file that was named: it is there, a file, and inside the package even where its folders are links. */
function wishedFile(root: string, path: string): string {
  const plain = path.replaceAll('\\', '/').replace(/^\.\//, '')
  const place = join(root, plain)
  const stat = lstatSync(place, { throwIfNoEntry: false })
  if (stat?.isFile() !== true) throw new CliError(`--include: the package has no file ${clip(path)}`, 'Correct the path')
  if (!realpathSync(place).startsWith(`${realpathSync(root)}${sep}`))
    throw new CliError(`--include: ${clip(path)} is outside the package`, 'Move it into the package')
  return plain
}

/** The refusal that names files which look like secrets. */
function secretsWanted(paths: readonly string[]): CliError {
  const shown = paths.slice(0, 10).map(path => clip(path, 120))
  const more = paths.length > shown.length ? ` and ${paths.length - shown.length} more` : ''
  return new CliError(
    `The bundle would contain files whose names look like secrets: ${shown.join(', ')}${more}. Nothing was written`,
    `Remove them from "files" or list them in .mcpbignore. If a file is not a secret, pass --include ${shown[0]}`,
  )
}

/** Decides about one file or folder; a folder that is not taken is not entered. */
type Takes = (path: string, name: string, isFile: boolean) => boolean

/** Adds the files of a folder that are wanted, without following links. */
function walk(folder: string, prefix: string, found: { readonly files: Map<string, string>; bytes: number }, takes: Takes): void {
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
        `The bundle would have more than ${mostFiles} files or ${mostBytes >> 20} MiB (the limit)`,
        'List files that the server does not need in .mcpbignore',
      )
  }
}

/** What `.mcpbignore` leaves out. */
function ignoredIn(root: string): (path: string) => boolean {
  const file = join(root, '.mcpbignore')
  if (!existsSync(file)) return () => false
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .map(line => line.trim())
  const patterns = lines.filter(line => line !== '' && !line.startsWith('#')).map(patternOf)
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
/** What Node tries behind the path of an import, in its order. */
const endings = ['', '.js', '.mjs', '.cjs', '.json', '.node', '/index.js', '/index.cjs']

/** Paths with slashes, seen from the root; the entry is the first. */
function importedFiles(root: string, entry: string): readonly string[] {
  const found = new Set<string>([entry])
  for (const path of found) {
    if (!/\.[cm]?js$/.test(path)) continue
    for (const specifier of specifiersIn(readFileSync(join(root, path), 'utf8'))) {
      const file = fileAt(resolve(root, dirname(path), specifier))
      if (file === undefined) continue
      const inside = relative(root, file).replaceAll('\\', '/')
      if (inside.startsWith('../'))
        throw new CliError(
          `${clip(path)} imports ${clip(specifier)}, which is outside the package`,
          'Move it into the package, or make it a dependency',
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

/** A package that the bundle brings along. */
interface Dependency {
  /** Its place below `node_modules`. */
  readonly name: string
  /** Where it lies, without links. */
  readonly folder: string
  /** Whether a path inside it belongs to the package. */
  takes(path: string): boolean
}

/** All packages that are needed at runtime, also those that others need. */
function dependenciesOf({ root, dependencies }: PackageFacts): readonly Dependency[] {
  const found = new Map<string, Dependency>()
  const open = dependencies.map(name => ({ name, from: root, needed: true }))
  for (let next = open.shift(); next !== undefined; next = open.shift()) {
    const { name, from, needed } = next
    if (!isPackageName(name))
      throw new CliError(`"${clip(name)}" is not a valid npm package name`, 'Correct "dependencies" in package.json')
    const folder = installed(name, from)
    if (folder === undefined) {
      if (needed) throw new CliError(`The dependency ${clip(name)} is not installed`, 'Run npm install')
      continue
    }
    const place = nested(name, folder, root)
    if (found.has(place)) continue
    const of = packageIn(folder)
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
      `The dependency ${clip(name)} is a link to ${clip(folder, 200)}, and the package.json there has no "files"`,
      'Add "files" to that package.json, or install the package instead of linking it',
    )
  return wantedBy([...files.filter(word => typeof word === 'string'), 'package.json', 'LICENSE*'])
}

/** The folder of an installed package, seen from the folder of the one that needs it. */
function installed(name: string, from: string): string | undefined {
  const places = foldersFrom(from).map(at => join(at, 'node_modules', name))
  const place = places.find(at => existsSync(join(at, 'package.json')))
  return place && realpathSync(place)
}

/** A package within another stays there, because it is another version. */
function nested(name: string, folder: string, root: string): string {
  const inside = join(realpathSync(root), 'node_modules')
  return folder.startsWith(`${inside}${sep}`) ? folder.slice(inside.length + 1).replaceAll('\\', '/') : name
}

// Patterns of files as package.json and ignore files have them: a folder, names with stars in them, and a ! that takes out again.

/** One line of a list of files, compiled. */
interface Pattern {
  /** Matches it and all below it. */
  readonly inside: RegExp
  /** Whether a path is a folder on the way to it. */
  readonly above: (path: string) => boolean
  /** It has no slash, so an ignore file means it in every folder. */
  readonly anywhere: boolean
}

/** `*` and `?` stay within a name, `**` does not. */
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

/** Whether a path is one of a list of files, or a folder on the way to one. A folder stands for all in it; `!` takes out again. */
function wantedBy(files: readonly string[]): (path: string) => boolean {
  const patterns = files.filter(word => !word.startsWith('!')).map(patternOf)
  const without = files.filter(word => word.startsWith('!')).map(word => patternOf(word.slice(1)))
  return path => {
    if (without.some(({ inside }) => inside.test(path))) return false
    return patterns.some(({ inside, above }) => inside.test(path) || above(path))
  }
}

/** Keys, databases and recordings, by their endings. */
const secretEndings =
  /\.(pem|key|p12|pfx|p8|jks|keystore|kdbx|ppk|asc|gpg|tape|har|db|db3|sqlite|sqlite3|sqlitedb|mdb)([-.][\w.-]+)?$|\.(db|sqlite)-(wal|shm|journal)$/i

/** Files that programs of the user keep credentials in. */
const named =
  /^(\.env(\..*)?|.*\.env|\.envrc|\.npmrc|\.yarnrc(\.yml)?|\.netrc|_netrc|\.pypirc|\.pgpass|\.my\.cnf|\.htpasswd|\.git-credentials|\.dockercfg|\.vault-token|id_(rsa|dsa|ecdsa|ed25519)(\..*)?|known_hosts|authorized_keys|.*_history)$/i

/** Tokens and credentials that lie in data; code of that name is code. */
const data =
  /^[\w.-]*(token|credential|secret|password|passwd|service[-_.]?account)s?[\w-]*(\.(json|ya?ml|toml|ini|cfg|conf|txt|csv|enc|bin|dat|jsonl))?$/i
/** Files that may be named after a secret because they work with one. */
const code = /\.([cm]?[jt]sx?|map|wasm|node|d\.[cm]?ts|md|html|css)$/i

/** Folders in which all is secret. */
const folders = new Set(['.ssh', '.aws', '.gnupg', '.kube', '.docker', '.azure', '.gcloud', '.vivarium', '.git'])

/** `path` as it stands in the package, with slashes. */
export function looksSecret(path: string): boolean {
  const parts = path.split('/')
  const name = parts.at(-1) ?? ''
  if (parts.slice(0, -1).some(folder => folders.has(folder.toLowerCase()))) return true
  if (named.test(name)) return true
  return !code.test(name) && (secretEndings.test(name) || data.test(name))
}
