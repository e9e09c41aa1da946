/** Whether a file can be where a store is wanted: said before anything is opened. */
import { accessSync, constants, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { StoreError } from '../store.ts'

/** What to do about a path that cannot be opened. */
export const correctPath = 'Correct the path, or give this process permission to write there'

/** The message for a file that cannot be opened. */
export function unopened(path: string): string {
  return `The store sqlite:${path} cannot be opened`
}

/** Throws a StoreError that says what is in the way. Missing folders are none: they are made. */
export function checkSqlitePath(given: string): void {
  const path = resolve(given)
  const found = statOf(path)
  if (found?.isDirectory() === true)
    throw new StoreError('input', `${unopened(path)}: it is a folder. Name a file in it: sqlite:${path}/vivarium.db`)
  if (found !== undefined) return checkRights(path, path)
  let folder = dirname(path)
  while (statOf(folder) === undefined && dirname(folder) !== folder) folder = dirname(folder)
  if (statOf(folder)?.isDirectory() !== true)
    throw new StoreError('input', `${unopened(path)}: ${folder} is not a folder. ${correctPath}`)
  checkRights(path, folder)
}

/** Throws a StoreError if there is no file yet, for a store that must not be created. */
export function checkSqliteFile(path: string): void {
  if (statOf(resolve(path)) === undefined)
    throw new StoreError('input', `The store sqlite:${path} does not exist. Correct the path, or open it without create: false`)
}

function checkRights(path: string, place: string): void {
  try {
    accessSync(place, constants.W_OK)
  } catch (error) {
    throw new StoreError('input', `${unopened(path)}: this process has no permission to write to ${place}. ${correctPath}`, error)
  }
}

/** A part of the way that is a file has nothing below it, and says so in its own way. */
function statOf(path: string): ReturnType<typeof statSync> | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}
