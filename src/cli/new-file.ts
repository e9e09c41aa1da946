/** Files that the command makes: it writes over none, and through no link, unless it is told to replace what is there. */
import { lstatSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { clip } from '../jsonrpc/limits.ts'
import { CliError } from './exit.ts'

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
