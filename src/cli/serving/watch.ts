/**
 * Tells of changes to the code in a folder, once for all that are made together. Data that a server writes is no code. Folders are
 * watched, not files: editors replace a file by another one of its name.
 */
import { type FSWatcher, readdirSync, watch } from 'node:fs'
import { join } from 'node:path'

const code = /\.[cm]?[jt]sx?$/
const skipped = new Set(['node_modules', 'dist', 'coverage'])
/** Editors write a file in several steps. */
const settleMs = 120
const mostFolders = 500

export function watchCode(folder: string, changed: (file: string) => void): { close(): void } {
  const watchers = new Map<string, FSWatcher>()
  let timer: NodeJS.Timeout | undefined
  const look = (): void => {
    for (const path of foldersIn(folder)) if (!watchers.has(path)) follow(path)
  }
  const follow = (path: string): void => {
    const watcher = watch(path, (kind, file) => {
      // A folder may have come.
      if (kind === 'rename') look()
      if (file === null || !code.test(file)) return
      clearTimeout(timer)
      timer = setTimeout(() => changed(file), settleMs)
    })
    const end = (): void => {
      watchers.delete(path)
      watcher.close()
    }
    // A folder that vanished has nothing more to tell.
    watcher.on('error', end)
    watchers.set(path, watcher)
  }
  look()
  return {
    close() {
      clearTimeout(timer)
      for (const watcher of watchers.values()) watcher.close()
    },
  }
}

function foldersIn(folder: string): readonly string[] {
  const found = [folder]
  for (const path of found) {
    if (found.length >= mostFolders) break
    for (const entry of entriesOf(path))
      if (entry.isDirectory() && !entry.name.startsWith('.') && !skipped.has(entry.name)) found.push(join(path, entry.name))
  }
  return found.slice(0, mostFolders)
}

function entriesOf(path: string) {
  try {
    return readdirSync(path, { withFileTypes: true })
  } catch {
    return []
  }
}
