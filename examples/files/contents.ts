/** Reading and writing whole text files at places that were checked. */
import { randomUUID } from 'node:crypto'
import { lstat, open, rename, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Problem, problem } from 'vivarium/server'
import { checkPlace, openPlace } from './places.ts'

const most = 1024 * 1024

/** Null: there is none. */
export async function readFileIn(place: string): Promise<string | null> {
  let file: Awaited<ReturnType<typeof openPlace>>
  try {
    file = await openPlace(place)
  } catch (error) {
    if (error instanceof Problem && error.code === 'RESOURCE_NOT_FOUND') return null
    throw error
  }
  try {
    const { size } = await file.stat()
    if (size > most) throw problem('PAYLOAD_TOO_LARGE', `${place} has ${size} bytes, more than ${most} (the limit)`)
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await file.readFile())
  } catch (error) {
    if (error instanceof TypeError) throw problem('NO_TEXT', `${place} is not a UTF-8 text file`)
    throw error
  } finally {
    await file.close()
  }
}

/**
 * Whole or not at all: into a new file beside it, which then takes its name. So nothing is written through a link that somebody has put
 * there, and a file that has a second name elsewhere is left alone there. Null deletes it.
 */
export async function writeFileIn(place: string, content: string | null): Promise<void> {
  await checkPlace(place)
  if (content === null) return unlink(place)
  const mode = await lstat(place).then(
    stat => stat.mode & 0o777,
    () => undefined,
  )
  const fresh = join(dirname(place), `.${basename(place).slice(0, 100)}.${randomUUID()}`)
  const file = await open(fresh, 'wx', mode)
  try {
    // What the process would take away from new files was there on the old one.
    if (mode !== undefined) await file.chmod(mode)
    await file.writeFile(content)
    await file.sync()
    await file.close()
    await checkPlace(place)
    await rename(fresh, place)
  } catch (error) {
    await file.close().catch(() => undefined)
    await unlink(fresh).catch(() => undefined)
    throw error
  }
}
