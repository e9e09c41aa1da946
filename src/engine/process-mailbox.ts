/**
 * Letters between processes on one store. Each has a number, and asks under ids that begin with it, so that an answer tells by
 * its id whose it is. The store's hints make it quick; while something is awaited it is looked for all the same.
 */
import type { Clock } from '../core/clock.ts'
import type { Id } from '../jsonrpc/message.ts'
import { add, put, remove } from '../stores/ops.ts'
import type { Store } from '../stores/store.ts'
import type { Engine } from './engine.ts'

export interface MailboxOptions {
  readonly engine: Engine
  readonly store: Store
  readonly clock: Clock
  readonly deliver: (session: string, message: Readonly<Record<string, unknown>>) => boolean
  readonly awaited: () => boolean
}

export interface Mailbox {
  readonly base: number
  /** False where the id is none of another process. */
  pass(session: string, id: Id, message: Readonly<Record<string, unknown>>): Promise<boolean>
  close(): void
}

/** So many ids each process has, and so many processes have numbers of their own: together still safe integers of 15 digits. */
const idsEach = 2 ** 31
const numbers = 2 ** 18
const lookEveryMs = 1_000
const letterMs = 60_000

export async function createMailbox(options: MailboxOptions): Promise<Mailbox> {
  const { store, clock, engine } = options
  const counted = await store.commit([add('replicas/count', 1)])
  const own = 1 + ((counted.ok ? (counted.results[0]?.sum ?? 0) : 0) % (numbers - 1))
  const prefix = `mail/${own}/`
  const ending = new AbortController()
  const look = async (): Promise<void> => {
    const letters = await store.scan(prefix)
    for (const { key, value } of letters) {
      const { session, message } = JSON.parse(value)
      if (!options.deliver(session, message)) engine.trace('answer-to-nothing', 'passed on')
      await store.commit([remove(key)])
    }
  }
  const looking = (): Promise<void> => look().catch(error => engine.trace('mail-unread', error))
  let cancel = (): void => {}
  const plan = (): void => {
    cancel = clock.setTimeout(() => void (options.awaited() ? looking() : Promise.resolve()).then(plan), lookEveryMs, true)
  }
  plan()
  void listen(store, prefix, ending.signal, looking).catch(error => engine.trace('mail-unread', error))
  return {
    base: own * idsEach,
    pass: async (session, id, message) => {
      const to = typeof id === 'number' ? Math.floor(id / idsEach) : 0
      if (to < 1 || to === own || to >= numbers) return false
      const key = `mail/${to}/${String(clock.now()).padStart(15, '0')}-${crypto.randomUUID()}`
      return (await store.commit([put(key, JSON.stringify({ session, message }), { ttl: letterMs })])).ok
    },
    close: () => {
      cancel()
      ending.abort()
    },
  }
}

async function listen(store: Store, prefix: string, signal: AbortSignal, look: () => Promise<void>): Promise<void> {
  for await (const _ of store.watch([prefix], signal)) await look()
}
