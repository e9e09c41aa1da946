/** The packages that a bundle needs at runtime and what those need, each found as Node would find it. */
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { CliError } from '../exit.ts'
import type { PackageFacts } from './facts.ts'
import { isPackageName } from './names.ts'
import { wantedBy } from './patterns.ts'

export interface Dependency {
  /** Its place below `node_modules`. */
  readonly name: string
  readonly folder: string
  /** Whether a path inside it belongs to the package. */
  takes(path: string): boolean
}

export function dependenciesOf({ root, dependencies }: PackageFacts): readonly Dependency[] {
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
