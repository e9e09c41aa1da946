/** Which files the checks read: paths relative to the repository, with forward slashes, sorted. */
import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')

const SKIPPED = new Set(['node_modules', 'dist', 'coverage'])

/** Every file under the folders (`.`: the whole repository) whose name fits, dependencies and hidden folders left out. */
export function listFiles(folders: readonly string[], fits: RegExp): string[] {
  return folders.flatMap(folder => (existsSync(join(root, folder)) ? walk(folder === '.' ? '' : folder, fits) : [])).sort()
}

/** Every file in dist/ whose name fits. */
export function listBuilt(fits: RegExp): string[] {
  return existsSync(join(root, 'dist')) ? walk('dist', fits) : []
}

function walk(folder: string, fits: RegExp): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap(entry => {
    const path = folder ? `${folder}/${entry.name}` : entry.name
    if (entry.isDirectory()) return SKIPPED.has(entry.name) || entry.name.startsWith('.') ? [] : walk(path, fits)
    return fits.test(entry.name) ? [path] : []
  })
}
