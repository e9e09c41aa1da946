/**
 * Where a path really leads. Links are followed once, here, and the place that is found must lie in one of the folders; whoever uses it
 * later opens that place without following anything.
 */
import { constants } from 'node:fs'
import { type FileHandle, lstat, open, realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { type Problem, problem } from 'vivarium/server'

export interface Bounds {
  /** The first one is what relative paths are relative to. */
  readonly folders: readonly string[]
  /** What must not be touched although it lies in one of them. */
  readonly except: readonly string[]
}

/** The canonical path of something that is there, or of something that could be made in a folder that is there. */
export async function placeOf(given: string, { folders, except }: Bounds): Promise<string> {
  const real = await Promise.all(folders.map(folder => realpath(folder).catch(() => undefined)))
  const roots = real.filter(folder => folder !== undefined)
  const [first] = roots
  if (first === undefined) throw outside(given, 'the client has not shared a folder')
  if (given === '' || given.length > 4096 || given.includes('\0')) throw outside(given, 'it is not a path')
  const place = await canonical(resolve(first, given))
  if (place === undefined) throw outside(given, 'its folder does not exist, or it is a broken link')
  if (!roots.some(root => isWithin(root, place))) throw outside(given, `it is outside ${roots.join(', ')}`)
  const kept = await Promise.all(except.map(each => canonical(resolve(each))))
  if (kept.some(each => each !== undefined && isWithin(each, place)))
    throw outside(given, 'this server stores its own files there')
  return place
}

async function canonical(path: string): Promise<string | undefined> {
  const real = await realpath(path).catch(() => undefined)
  if (real !== undefined) return real
  const isLink = await lstat(path).then(
    () => true,
    () => false,
  )
  const folder = isLink ? undefined : await realpath(dirname(path)).catch(() => undefined)
  return folder === undefined ? undefined : join(folder, basename(path))
}

function isWithin(folder: string, place: string): boolean {
  const way = relative(folder, place)
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}

/** The place is still what it was when it was found: since then somebody may have been asked, and somebody else may have moved it. */
export async function checkPlace(place: string): Promise<void> {
  if ((await canonical(place)) !== place) throw outside(place, 'it was replaced by a link during the call')
}

/** Opens a plain file, and nothing that a link, a pipe or a device has put in its place. */
export async function openPlace(place: string): Promise<FileHandle> {
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants
  const file = await open(place, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(error => {
    throw error.code === 'ENOENT' ? missing(place) : outside(place, `it cannot be opened (${error.code})`)
  })
  try {
    await checkPlace(place)
    const [opened, named] = [await file.stat(), await lstat(place)]
    if (!opened.isFile() || opened.ino !== named.ino || opened.dev !== named.dev) throw outside(place, 'it is not a regular file')
    return file
  } catch (error) {
    await file.close()
    throw error
  }
}

export function missing(place: string): Problem {
  return problem('RESOURCE_NOT_FOUND', `The file ${clipped(place)} does not exist`, {
    suggestion: 'List the files with list_files',
  })
}

function outside(given: string, why: string): Problem {
  return problem('PATH_REFUSED', `${clipped(given)} cannot be used: ${why}`, {
    suggestion: 'Use a file inside the folders that the client shares',
    category: 'invalid_input',
  })
}

const clipped = (path: string): string => JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path)
