/** The server's store: opened when something first has to last, closed with the server if the server opened it. */
import type { Clock } from '../core/clock.ts'
import type { Trace } from '../core/log.ts'
import { clip } from '../jsonrpc/limits.ts'
import { isRecord } from '../jsonrpc/message.ts'
import type { Store } from '../stores/store.ts'

/** A store that is opened when it is first needed. */
export interface LazyStore {
  open(): Promise<Store>
  /**
   * Opens it before anybody is let in, so that what is wrong with it is said at the start. Rejects for what no waiting mends (a
   * missing driver, a path that cannot be); a database that is down is only told, for it may be there when the first call comes.
   */
  ready(): Promise<void>
  close(): Promise<void>
}

/** Makes the store of a server from its option; a store that was handed in is not closed. */
export function lazyStore(option: string | Store | undefined, clock: Clock, trace: Trace): LazyStore {
  let opening: Promise<Store> | undefined
  let told: string | undefined
  /** The author gets a mistake in the option by a rejection of `listen` or `stdio`, so it is not logged too. */
  let serving = false
  const failed = (error: unknown): void => {
    const isOption = isMistake(error)
    if (isOption && serving) return
    const message = error instanceof Error ? error.message : String(error)
    // Each call that needs it would say the same.
    // Where in this package a mistake in an option was noticed helps nobody.
    if (message !== told) trace('store-unavailable', isOption ? { error: message } : error)
    told = message
  }
  const named = typeof option === 'string' && option !== 'memory:' ? option : undefined
  if (named !== undefined) void checked(named).catch(failed)
  const open = async (): Promise<Store> => {
    if (typeof option === 'object') return option
    const { openStore } = await import('../stores/open.ts')
    return openStore(option ?? 'memory:', { now: clock.now })
  }
  const lazy: LazyStore = {
    open: () => {
      // A store that cannot be opened now may be there for the next call.
      opening ??= open().catch(error => {
        opening = undefined
        failed(error)
        throw error
      })
      return opening
    },
    ready: async () => {
      if (named === undefined) return
      serving = true
      await lazy.open().catch(error => {
        if (isMistake(error)) throw error
      })
    },
    close: async () => {
      const opened = await opening?.catch(() => undefined)
      opening = Promise.reject(new Error('The server is closed'))
      opening.catch(() => {})
      if (typeof option !== 'object') await opened?.close()
    },
  }
  return lazy
}

async function checked(url: string): Promise<void> {
  const { checkStoreUrl } = await import('../stores/open.ts')
  return checkStoreUrl(url)
}

/** By what it says of itself: stores are loaded only where they are used. */
function isMistake(error: unknown): boolean {
  return error instanceof Error && error.name === 'StoreError' && (error as { readonly kind?: unknown }).kind === 'input'
}

/** What can be told at once; whether its place is a good one is told soon after, and whether it opens when the server is served. */
export function checkStore(option: unknown): void {
  if (option === undefined) return
  if (typeof option === 'string') {
    if (/^(memory:$|sqlite:.|postgres(ql)?:\/\/)/.test(option)) return
    throw new TypeError(`store is "${clip(option, 20)}". It must be memory:, sqlite:PATH, postgres://… or a store object`)
  }
  if (!isRecord(option) || typeof option['commit'] !== 'function')
    throw new TypeError('store must be memory:, sqlite:PATH, postgres://… or an object with get, scan, read, commit and watch')
}
