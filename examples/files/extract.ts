/**
 * For hosts: what the tools of this server act on, read from their arguments by the host itself. With it a host can decide before it calls,
 * and the server has nothing left to ask: `createHost({ extract: filesExtractors('files', '/project') })`.
 */
import { realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

interface Scope {
  readonly label: string
  readonly payload: { readonly path: string; readonly mode: 'read' | 'write' }
}

type Extractor = (args: Readonly<Record<string, unknown>>) => Scope | undefined

/** `folder`: the first of the roots, to which paths are relative. */
export function filesExtractors(server: string, folder: string): Readonly<Record<string, Extractor>> {
  const by =
    (mode: 'read' | 'write'): Extractor =>
    ({ path = '.' }) => {
      const place = typeof path === 'string' ? placeOf(resolve(folder, path)) : undefined
      return place === undefined ? undefined : { label: place, payload: { path: place, mode } }
    }
  return {
    [`${server}/read_file`]: by('read'),
    [`${server}/list_files`]: by('read'),
    [`${server}/write_file`]: by('write'),
    [`${server}/edit_file`]: by('write'),
  }
}

/** As the server finds it; undefined where it would refuse. */
function placeOf(path: string): string | undefined {
  const real = tried(() => realpathSync(path))
  return real ?? tried(() => join(realpathSync(dirname(path)), basename(path)))
}

function tried<T>(fn: () => T): T | undefined {
  try {
    return fn()
  } catch {
    return undefined
  }
}
