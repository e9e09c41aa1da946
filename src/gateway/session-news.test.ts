import { expect, it, onTestFinished } from 'vitest'
import { connect } from '../client/index.ts'
import { createServer } from '../server/index.ts'
import { memoryStore, type Store } from '../stores/index.ts'
import { createGateway } from './create.ts'

/** A store that fails once when somebody looks for what was told of sessions. */
function failingOnce(store: Store): Store {
  let failed = false
  return {
    get: key => store.get(key),
    scan: async (prefix, options) => {
      if (prefix === 'gateway/session/' && !failed) {
        failed = true
        throw new Error('The store is away')
      }
      return store.scan(prefix, options)
    },
    read: (log, options) => store.read(log, options),
    commit: ops => store.commit(ops),
    watch: (prefixes, signal) => store.watch(prefixes, signal),
    close: async () => {},
  }
}

it('a subscription that one gateway took is kept by the one that has the stream, though the store failed it once', async () => {
  const notes = createServer({ name: 'notes', version: '1.0.0', log: 'silent' })
  notes.resource('note://1', { name: 'note' }, () => 'note')
  onTestFinished(() => notes.close())
  const { url: upstream } = await notes.listen()
  const store = memoryStore()
  const secret = 'a secret of both, of at least 32 characters'
  const open = async (kept: Store) => {
    const gateway = await createGateway({ servers: { notes: upstream }, store: kept, secret, log: 'silent' })
    onTestFinished(() => gateway.close())
    await gateway.ready()
    return (await gateway.listen()).url
  }
  const [streams, posts] = [await open(failingOnce(store)), await open(store)]
  // What is said unasked comes from the one, all that is asked goes to the other.
  const streaming = Promise.withResolvers<void>()
  const apart: typeof fetch = async (input, init) => {
    if (init?.method !== 'GET') return fetch(String(input).replace(streams, posts), init)
    const response = await fetch(input, init)
    streaming.resolve()
    return response
  }
  const client = await connect(streams, { revisions: ['2025-11-25'], fetch: apart })
  onTestFinished(() => client.close())
  await streaming.promise
  const heard: string[] = []
  void (async () => {
    for await (const uri of client.resourceUpdates('note://1')) heard.push(uri)
  })().catch(() => {})
  await expect
    .poll(
      () => {
        notes.resourceUpdated('note://1')
        return heard.length
      },
      { timeout: 10_000, interval: 100 },
    )
    .toBeGreaterThan(0)
})
