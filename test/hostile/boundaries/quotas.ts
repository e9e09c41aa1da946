/** What one caller does to what another keeps: floods, guessed names, and times that nobody allowed. */
import { type Client, connect } from 'vivarium/client'
import { createServer, oauth, type ServerOptions } from 'vivarium/server'
import { fakeClock } from 'vivarium/testing'
import type { HostileCase, Verdict } from '../case.ts'

/** Whoever says a name has it: that is enough to be told apart here. */
const auth = oauth({ issuer: 'https://issuer.example', verify: async subject => ({ subject }) })

/** A bank that counts its payments, and one client for each name. */
function bank(options: Partial<ServerOptions> = {}) {
  const server = createServer({
    name: 'bank',
    version: '1.0.0',
    log: 'silent',
    store: 'memory:',
    limits: { rates: false },
    ...options,
  })
  let payments = 0
  server.tool('pay', { undo: { tool: 'refund' } }, () => `payment ${++payments}`)
  server.tool('refund', { idempotent: true }, () => 'refunded')
  server.tool('report', {}, () => 'x'.repeat(1_000_000))
  const clients: Client[] = []
  let listening: Promise<{ readonly url: string }> | undefined
  const as = async (name: string): Promise<Client> => {
    listening ??= server.listen({ auth })
    const client = await connect((await listening).url, { headers: { authorization: `Bearer ${name}` }, retry: false })
    clients.push(client)
    return client
  }
  const close = async (): Promise<void> => {
    await Promise.all(clients.map(client => client.close()))
    await server.close()
  }
  return { server, as, payments: () => payments, close }
}

/** One caller keeps 280 results of a megabyte; the payment of another is repeated after that. */
async function largeResults(): Promise<Verdict> {
  const { as, payments, close } = bank()
  const [ada, bob] = [await as('ada'), await as('bob')]
  const first = await bob.callTool('pay', {}, { idempotencyKey: 'bob-1' })
  const codes = new Set<string | undefined>()
  for (let n = 0; n < 280; n++) codes.add((await ada.callTool('report', {}, { idempotencyKey: `ada-${n}` })).problem?.code)
  const again = await bob.callTool('pay', {}, { idempotencyKey: 'bob-1' })
  const next = await bob.callTool('pay', {}, { idempotencyKey: 'bob-2' })
  await close()
  const well = first.text === again.text && next.text === 'payment 2' && payments() === 2
  return { well, detail: `the repeat gave "${again.text}", the next "${next.text}", after refusals ${[...codes].join(', ')}` }
}

/** Small ones until the share is full: the wait is told, and repeats are still answered. */
async function manyRecords(): Promise<Verdict> {
  const { as, close } = bank({ idempotency: { records: 100 } })
  const [ada, bob] = [await as('ada'), await as('bob')]
  let refused: { code: string; retryAfter: number | undefined } | undefined
  for (let n = 0; n < 100 && refused === undefined; n++) {
    const { problem } = await ada.callTool('pay', {}, { idempotencyKey: `ada-${n}` })
    if (problem !== undefined) refused = { code: problem.code, retryAfter: problem.retryAfter }
  }
  const other = await bob.callTool('pay', {}, { idempotencyKey: 'bob-1' })
  const repeat = await ada.callTool('pay', {}, { idempotencyKey: 'ada-0' })
  await close()
  const well =
    refused?.code === 'QUOTA_EXHAUSTED' && (refused.retryAfter ?? 0) > 0 && !other.isError && repeat.text === 'payment 1'
  return { well, detail: `${refused?.code} after ${refused?.retryAfter} ms; another: ${other.text}; the repeat: ${repeat.text}` }
}

/** Two strangers over HTTP without authorization: one guesses the id of the other's transaction. */
async function guessedTransaction(): Promise<Verdict> {
  const { server } = bank()
  const { url } = await server.listen()
  const [ann, eve] = [await connect(url), await connect(url)]
  const transaction = await ann.transaction({ id: 'tx-1' })
  await transaction.callTool('pay')
  const stolen = await eve.transactionStatus('tx-1').then(
    ({ status }) => status,
    () => undefined,
  )
  const key = await ann.callTool('pay', {}, { idempotencyKey: 'op-1' }).then(
    ({ text }) => text,
    () => undefined,
  )
  const { status } = await transaction.commit()
  await Promise.all([ann.close(), eve.close()])
  await server.close()
  const well = stolen === undefined && key === undefined && status === 'committed'
  return {
    well,
    detail: `by the guessed id: ${stolen ?? 'nothing'}; under a guessable key: ${key ?? 'refused'}; its owner: ${status}`,
  }
}

/** A key that is to be remembered for a thousand years. */
async function endlessKey(): Promise<Verdict> {
  const clock = fakeClock()
  const { as, close } = bank({ clock, idempotency: { maxTtl: '1h' } })
  const ada = await as('ada')
  const meta = { 'dev.vivarium/idempotency': { idempotency_key: 'k', idempotency_ttl_seconds: 31_536_000_000 } }
  const first = await ada.callTool('pay', {}, { meta, idempotencyKey: 'k' })
  clock.advance(3_600_000)
  const later = await ada.callTool('pay', {}, { meta, idempotencyKey: 'k' })
  await close()
  return {
    well: first.text === 'payment 1' && later.text === 'payment 2',
    detail: `first ${first.text}, after an hour ${later.text}`,
  }
}

export const cases: readonly HostileCase[] = [
  {
    key: 'QT01',
    name: 'One caller keeps 280 results of 1 MB: the repeated payment of another is not made twice',
    run: largeResults,
  },
  {
    key: 'QT02',
    name: 'One caller fills its share of keys: it is told to wait, others go on, repeats are answered',
    run: manyRecords,
  },
  {
    key: 'QT03',
    name: 'A stranger guesses the id of a transaction and a key: neither is found or shared',
    run: guessedTransaction,
  },
  { key: 'QT04', name: 'A caller asks for a key to be kept for ever: it ends when the server says', run: endlessKey },
]
