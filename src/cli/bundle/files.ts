/**
 * Which files go into a bundle: those that package.json lists, else those that the entry imports; and the packages it needs at
 * runtime. What looks like a secret is refused, whoever lists it, and no link is followed out of the package.
 */
import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { join, sep } from 'node:path'
import { clip } from '../../jsonrpc/limits.ts'
import { CliError } from '../exit.ts'
import { dependenciesOf } from './dependencies.ts'
import type { PackageFacts } from './facts.ts'
import { importedFiles } from './imports.ts'
import { patternOf, wantedBy } from './patterns.ts'
import { looksSecret } from './secrets.ts'

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
