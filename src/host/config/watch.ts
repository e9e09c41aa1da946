/**
 * Looks at a file when something may have happened to it: told by the system at once, and now and then in any case, because not
 * every file system tells. Its folder is watched, since editors put a new file in the place of the old one.
 */
import { type FSWatcher, watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import type { Cancel, Clock } from '../../core/clock.ts'
import { digestText } from '../../core/digest.ts'

interface WatchOptions {
  readonly clock: Clock
  /** Told of each text that differs from the one before. Waited for, so that two never run at once. */
  readonly changed: (text: string) => Promise<void>
  /** Told that the file cannot be read now. */
  readonly failed: (error: unknown) => void
  /** How long it must be quiet before the file is read. Default 100 ms. */
  readonly settleMs?: number
  /** How often it is read in any case. Default 10 s. */
  readonly everyMs?: number
}

/** `first` is the text that is known. Gives the way to stop. */
export function watchText(path: string, first: string, options: WatchOptions): () => Promise<void> {
  const { clock, changed, failed, settleMs = 100, everyMs = 10_000 } = options
  let stopped = false
  let known = digestText(first)
  let timer: Cancel | undefined
  let looking: Promise<void> = Promise.resolve()

  const wait = (ms: number): void => {
    timer?.()
    if (!stopped) timer = clock.setTimeout(look, ms, true)
  }
  const look = (): void => {
    looking = looking
      .then(read)
      .catch(failed)
      .finally(() => wait(everyMs))
  }
  const read = async (): Promise<void> => {
    const text = await readFile(path, 'utf8')
    const digest = await digestText(text)
    if (stopped || digest === (await known)) return
    known = Promise.resolve(digest)
    await changed(text)
  }
  const watcher = watching(dirname(path), basename(path), () => wait(settleMs), failed)
  wait(everyMs)
  return async () => {
    stopped = true
    timer?.()
    watcher?.close()
    await looking
  }
}

/** Undefined where the system will not tell. */
function watching(folder: string, name: string, told: () => void, failed: (error: unknown) => void): FSWatcher | undefined {
  try {
    return watch(folder, { persistent: false }, (_, changed) => {
      if (changed === null || changed === name) told()
    }).on('error', failed)
  } catch (error) {
    failed(error)
    return undefined
  }
}
