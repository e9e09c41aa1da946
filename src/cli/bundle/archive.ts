/** The zip of a bundle: the same bytes for the same files, whenever and wherever it is made. */
import { createHash } from 'node:crypto'
import { lstatSync, readFileSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { type Zippable, zipSync } from 'fflate'
import { clip } from '../../jsonrpc/limits.ts'
import { CliError } from '../errors.ts'
import { checkedEntry } from './package-facts.ts'

interface Archive {
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

/** Where a link leads does not matter: it is there, and whoever put it there chose where it leads. */
export function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

export function alreadyThere(path: string): CliError {
  return new CliError(1, `There is a file ${clip(path, 200)} already`, 'Name another one, or replace it with --force')
}

/** Replaced as a whole: of a link the link, not what it leads to. */
export async function writeNewFile(path: string, data: string | Uint8Array, force: boolean): Promise<void> {
  if (force) {
    const beside = `${path}.${process.pid}.new`
    try {
      await writeFile(beside, data, { flag: 'wx' })
      await rename(beside, path)
    } catch (error) {
      await rm(beside, { force: true })
      throw error
    }
    return
  }
  try {
    await writeFile(path, data, { flag: 'wx' })
  } catch (error) {
    throw error instanceof Error && 'code' in error && error.code === 'EEXIST' ? alreadyThere(path) : error
  }
}
