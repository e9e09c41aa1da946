/** The server's store: opened when something first has to last, closed with the server if the server opened it. */
import type { Clock } from '../core/clock.ts'
import { clip } from '../jsonrpc/limits.ts'
import { isRecord } from '../jsonrpc/message.ts'
import type { Store } from '../stores/store.ts'

export interface LazyStore {
  open(): Promise<Store>
  close(): Promise<void>
}

export function lazyStore(option: string | Store | undefined, clock: Clock): LazyStore {
  let opening: Promise<Store> | undefined
  const open = async (): Promise<Store> => {
    if (typeof option === 'object') return option
    const { openStore } = await import('../stores/open.ts')
    return openStore(option ?? 'memory:', { now: clock.now })
  }
  return {
    open: () => {
      // A store that cannot be opened now may be there for the next call.
      opening ??= open().catch(error => {
        opening = undefined
        throw error
      })
      return opening
    },
    close: async () => {
      const opened = await opening?.catch(() => undefined)
      opening = Promise.reject(new Error('The server is closed'))
      opening.catch(() => {})
      if (typeof option !== 'object') await opened?.close()
    },
  }
}

/** What can be told at once; that it opens is seen when it is needed. */
export function checkStore(option: unknown): void {
  if (option === undefined) return
  if (typeof option === 'string') {
    if (/^(memory:$|sqlite:.|postgres(ql)?:\/\/)/.test(option)) return
    throw new TypeError(`store is "${clip(option, 20)}": give memory:, sqlite:path, postgres://… or a store`)
  }
  if (!isRecord(option) || typeof option['commit'] !== 'function')
    throw new TypeError(
      'store must be memory:, sqlite:path, postgres://… or a store: something with get, scan, read, commit, watch',
    )
}
