/** The zip of a bundle: the same bytes for the same files, whenever and wherever it is made. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type Zippable, zipSync } from 'fflate'
import { checkedEntry } from './names.ts'

export interface Archive {
  readonly bytes: Uint8Array
  /** Hexadecimal, as registries want it. */
  readonly sha256: string
  readonly files: number
}

/** The first day that a zip can name. */
const noTime = new Date(1980, 0, 1)

/** `files`: paths in the archive, and where each lies. */
export function archiveOf(files: ReadonlyMap<string, string>, manifest: string): Archive {
  const entries: Zippable = { 'manifest.json': [Buffer.from(manifest), { mtime: noTime }] }
  for (const path of [...files.keys()].sort()) {
    if (path === 'manifest.json') continue
    entries[checkedEntry(path)] = [readFileSync(files.get(path) as string), { mtime: noTime }]
  }
  const bytes = zipSync(entries, { level: 9 })
  return { bytes, sha256: createHash('sha256').update(bytes).digest('hex'), files: Object.keys(entries).length }
}
