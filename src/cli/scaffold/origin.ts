/** Where the package that runs was installed from, so that what it begins can be installed from there, too. */
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { isRecord } from '../../jsonrpc/message.ts'
import { selfCommand } from '../self.ts'

/** The folder of this package. */
export function packageRoot(): string {
  let at = dirname(selfCommand([]).args[0] ?? '')
  while (!existsSync(join(at, 'package.json')) && dirname(at) !== at) at = dirname(at)
  return at
}

/**
 * The tarball or folder, or an address such as `git+https://…`, by which the package above asks for the one at `root`; a clone is
 * named by its folder. Undefined: it is from the registry.
 */
export function installedFrom(root: string): string | undefined {
  if (basename(dirname(root)) !== 'node_modules') return `file:${root}`
  const home = dirname(dirname(root))
  const spec = dependencyIn(join(home, 'package.json'), basename(root))
  if (spec === undefined || !/^[a-z+]+:/.test(spec)) return undefined
  return spec.startsWith('file:') ? `file:${resolve(home, spec.slice('file:'.length))}` : spec
}

function dependencyIn(file: string, name: string): string | undefined {
  if (!existsSync(file)) return undefined
  const said: unknown = JSON.parse(readFileSync(file, 'utf8'))
  const lists = isRecord(said) ? [said['dependencies'], said['devDependencies']] : []
  const found = lists.map(list => (isRecord(list) ? list[name] : undefined)).find(spec => typeof spec === 'string')
  return found as string | undefined
}
