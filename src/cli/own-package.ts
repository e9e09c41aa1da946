/** This command as a program to start: from the source as well as from what it is built to. */
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from '../client/target.ts'
import { isRecord } from '../jsonrpc/message.ts'

/** Bundled, this file is part of a chunk beside the folder of the command. */
const places = ['./main.ts', './main.js', '../cli/main.js'].map(path => fileURLToPath(new URL(path, import.meta.url)))

/** @example selfCommand(['serve', 'server.ts', '--stdio']) */
export function selfCommand(args: readonly string[]): Command & { readonly args: readonly string[] } {
  const main = places.find(existsSync)
  if (main === undefined)
    throw new Error(
      `The vivarium command is missing. Looked at ${places.join(', ')}. Install vivarium again, or run npm run build in a clone`,
    )
  return { command: process.execPath, args: [main, ...args] }
}

/** A folder and all above it, the nearest first. */
export function foldersFrom(folder: string): readonly string[] {
  return dirname(folder) === folder ? [folder] : [folder, ...foldersFrom(dirname(folder))]
}

/** The package.json of a folder, unchecked. */
export function packageIn(folder: string): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  return isRecord(value) ? value : {}
}

/** The folder of this package. */
export function packageRoot(): string {
  const main = dirname(selfCommand([]).args[0] ?? '')
  return foldersFrom(main).find(at => existsSync(join(at, 'package.json'))) ?? main
}

/**
 * The tarball or folder, or an address such as `git+https://…`, by which the package above asks for the one at `root`; a clone is
 * named by its folder. Undefined: it is from the registry.
 */
export function installedFrom(root: string): string | undefined {
  if (basename(dirname(root)) !== 'node_modules') return `file:${root}`
  const home = dirname(dirname(root))
  const spec = dependencyIn(home, basename(root))
  if (spec === undefined || !/^[a-z+]+:/.test(spec)) return undefined
  return spec.startsWith('file:') ? `file:${resolve(home, spec.slice('file:'.length))}` : spec
}

/** How a package.json asks for a package. */
function dependencyIn(folder: string, name: string): string | undefined {
  if (!existsSync(join(folder, 'package.json'))) return undefined
  const { dependencies, devDependencies } = packageIn(folder)
  const lists = [dependencies, devDependencies]
  const found = lists.map(list => (isRecord(list) ? list[name] : undefined)).find(spec => typeof spec === 'string')
  return found as string | undefined
}
