/** Callers over HTTP who did not sign in and have no session: nothing that one of them does is another's, whatever names they choose. */
import { Agent } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { connect } from '../../src/client/index.ts'
import { createServer, type Server, type ServerOptions } from '../../src/server/index.ts'
import { type HttpPeer, headersFor, httpPeer, send } from '../spec/http.ts'
import { enveloped, errorOf, type Frame, resultOf, textOf } from '../spec/wire.ts'

const revision = '2026-07-28'
const ids = ['idempotency', 'transactions', 'problem', 'state', 'events', 'confirmation']
const named = Object.fromEntries(ids.map(id => [`dev.vivarium/${id}`, {}]))
const capabilities = { extensions: { ...named, 'dev.vivarium/live': { version: '0.2' } } }
const servers: Server[] = []
const agents: Agent[] = []
afterEach(async () => {
  for (const agent of agents.splice(0)) agent.destroy()
  for (const server of servers.splice(0)) await server.close()
})

async function shop(options: Partial<ServerOptions> = {}) {
  const server = createServer({
    name: 'shop',
    version: '1.0.0',
    log: 'silent',
    limits: { rates: false },
    store: 'memory:',
    ...options,
  })
  servers.push(server)
  const log: string[] = []
  const order = { input: z.object({ item: z.string() }) }
  server.tool('order', { ...order, undo: { tool: 'cancel' } }, ({ item }) => `order ${log.push(`order ${item}`)}`)
  server.tool('cancel', order, ({ item }) => `cancelled ${log.push(`cancel ${item}`)}`)
  server.tool('click', { ...order, dedupe: '1m' }, ({ item }) => `click ${log.push(`click ${item}`)}`)
  const message = 'Sell {item}?'
  server.tool('sell', { ...order, confirm: { channel: 'queue', message } }, ({ item }) => `sold ${log.push(item)}`)
  server.tool('wait', { ...order, confirm: { channel: 'queue', message, wait: '1m' } }, ({ item }) => `sold ${log.push(item)}`)
  server.event('sold', {})
  const { url } = await server.listen()
  const stranger = (): Promise<HttpPeer> => httpPeer(url, revision, capabilities)
  return { server, log, url, stranger }
}

const order = (item: string, meta: Frame = {}): Frame => ({ name: 'order', arguments: { item }, _meta: meta })
const keyed = (idempotency_key: string): Frame => ({ 'dev.vivarium/idempotency': { idempotency_key } })
const within = (transaction_id: unknown): Frame => ({ 'dev.vivarium/transactions': { transaction_id } })
const ask = async (peer: HttpPeer, method: string, params: Frame, name?: unknown): Promise<Frame> =>
  (await peer.ask(method, params, typeof name === 'string' ? { headers: { 'mcp-name': name } } : {})).frame
const codeOf = (frame: Frame): unknown =>
  frame['error'] === undefined
    ? ((resultOf(frame)['_meta'] as Frame | undefined)?.['dev.vivarium/problem'] as Frame | undefined)?.['code']
    : (errorOf(frame).data?.['code'] ?? errorOf(frame).code)

describe('C8: names that others could guess', () => {
  it('an idempotency key must be a secret: else the call is refused, and nothing runs or is told of it', async () => {
    const { stranger, log } = await shop()
    const [ann, eve] = [await stranger(), await stranger()]
    expect(codeOf(await ask(ann, 'tools/call', order('book', keyed('op-1'))))).toBe(-32602)
    expect(codeOf(await ask(eve, 'idempotency/get', { idempotency_key: 'op-1' }))).toBe(-32602)
    expect(log).toEqual([])
    const secret = crypto.randomUUID()
    const answers = [1, 2].map(() => ask(ann, 'tools/call', order('book', keyed(secret))))
    expect((await Promise.all(answers)).map(textOf)).toEqual(['order 1', 'order 1'])
  })

  it('a transaction is completed to a secret id, and by the id that was asked for nobody finds it', async () => {
    const { stranger, log } = await shop()
    const [ann, eve] = [await stranger(), await stranger()]
    const begun = resultOf(await ask(ann, 'transaction/begin', { transaction_id: 'tx-1' }, 'tx-1'))
    const id = begun['transaction_id'] as string
    expect(id).toMatch(/^tx-1\.[0-9a-f-]{36}$/)
    await ask(ann, 'tools/call', order('book', within(id)))
    for (const method of ['transaction/rollback', 'transaction/commit', 'transaction/get'])
      expect(codeOf(await ask(eve, method, { transaction_id: 'tx-1' }, 'tx-1'))).toBe('RESOURCE_NOT_FOUND')
    expect(codeOf(await ask(eve, 'tools/call', order('pen', within('tx-1'))))).toBe('RESOURCE_NOT_FOUND')
    expect(resultOf(await ask(eve, 'transaction/begin', { transaction_id: 'tx-1' }, 'tx-1'))['transaction_id']).not.toBe(id)
    expect(resultOf(await ask(ann, 'transaction/commit', { transaction_id: id }, id))['status']).toBe('committed')
    expect(log).toEqual(['order book'])
  })

  it('a host that listens must have one that is a secret: else whoever guesses it hears and answers in its place', async () => {
    const server = createServer({ name: 'lively', version: '1.0.0', log: 'silent' })
    servers.push(server)
    server.featureSet('memory', { description: 'Finds memories' }).beforeInference(() => undefined)
    const { url } = await server.listen()
    const eve = await httpPeer(url, revision, capabilities)
    for (const hostId of ['laptop', 'x'.repeat(201)]) {
      const answer = await ask(eve, 'live/listen', { hostId, host: { version: '0.2' } })
      expect([codeOf(answer), errorOf(answer).message]).toEqual([-32602, expect.stringContaining('params.hostId')])
    }
  })

  it('our client goes on with the id that it was given', async () => {
    const { url, log } = await shop()
    const client = await connect(url, { revisions: [revision] })
    const transaction = await client.transaction({ id: 'tx-1' })
    await transaction.callTool('order', { item: 'book' })
    expect([(await transaction.rollback()).status, transaction.id.length > 36]).toEqual(['rolled_back', true])
    expect(log).toEqual(['order book', 'cancel book'])
    await client.close()
  })
})

describe('C8: what strangers do alike', () => {
  it('the same call by two of them is two calls, also where the tool joins calls that are the same', async () => {
    const { stranger } = await shop()
    const click = { name: 'click', arguments: { item: 'ad' } }
    const answers = [await ask(await stranger(), 'tools/call', click), await ask(await stranger(), 'tools/call', click)]
    expect(answers.map(textOf)).toEqual(['click 1', 'click 2'])
  })

  it('E6-3: an approval is for the request that waits for it, and no other', async () => {
    const { server, stranger, log } = await shop()
    const [ann, eve] = [await stranger(), await stranger()]
    const wait = { name: 'wait', arguments: { item: 'house' } }
    const answers = [ask(ann, 'tools/call', wait), ask(eve, 'tools/call', wait)]
    await expect.poll(async () => (await server.confirmations.waiting()).length).toBe(2)
    const [first, second] = await server.confirmations.waiting()
    expect(await server.confirmations.approve(first?.id ?? '')).toBe(true)
    expect(await server.confirmations.refuse(second?.id ?? '')).toBe(true)
    const told = await Promise.all(answers)
    expect(told.map(answer => resultOf(answer)['isError'] === true).sort()).toEqual([false, true])
    expect(log).toEqual(['house'])
  })

  it('E6-3: an approval that comes later is for whoever was given its id, and for that call', async () => {
    const { server, stranger, log } = await shop()
    const [ann, eve] = [await stranger(), await stranger()]
    const sell = (item: string, approval_id?: unknown) => ({
      name: 'sell',
      arguments: { item },
      ...(approval_id !== undefined && { _meta: { 'dev.vivarium/confirmation': { approval_id } } }),
    })
    const refused = resultOf(await ask(ann, 'tools/call', sell('house')))
    const { details } = (refused['_meta'] as Frame)['dev.vivarium/problem'] as { details: Frame }
    const id = details['approval_id'] as string
    expect(await server.confirmations.approve(id)).toBe(true)
    for (const other of [sell('house'), sell('house', '~anonymous.x'), sell('castle', id)])
      expect(codeOf(await ask(eve, 'tools/call', other))).toBe('CONFIRMATION_REQUIRED')
    expect(log).toEqual([])
    expect(textOf(await ask(ann, 'tools/call', sell('house', id)))).toBe('sold 1')
    expect(codeOf(await ask(ann, 'tools/call', sell('house', id)))).toBe('CONFIRMATION_REQUIRED')
    expect(log).toEqual(['house'])
  })

  it('E15-7: a subscription is not ended by another who knows its id', async () => {
    const { server, stranger } = await shop()
    const [ann, eve] = [await stranger(), await stranger()]
    const notifications = { 'dev.vivarium/events': [{ subscription_id: 's', events: ['sold'] }] }
    const { response, request } = await ann.open('subscriptions/listen', { notifications })
    let heard = ''
    response.setEncoding('utf8').on('data', chunk => {
      heard += chunk
    })
    await expect.poll(() => heard).toContain('"active"')
    await ask(eve, 'event/unsubscribe', { subscription_id: 's' })
    expect(heard).not.toContain('terminated')
    request.destroy()
    await server.close()
  })
})

// Other systems have no second address of their own without being told to.
it.runIf(process.platform === 'linux')(
  'E5-7: strangers of one network share its share, and those of another have theirs',
  async () => {
    const { url } = await shop({ idempotency: { records: 8 } })
    const from = (localAddress: string) => {
      const agent = new Agent({ localAddress })
      agents.push(agent)
      return async (): Promise<Frame> => {
        const params = order('book', keyed(crypto.randomUUID()))
        const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: enveloped(revision, params, capabilities) }
        return (await send(url, { agent, headers: headersFor(revision, 'tools/call', params), body })).frame
      }
    }
    const [here, there] = [from('127.0.0.1'), from('127.0.0.2')]
    let refused: unknown
    for (let n = 0; n < 8 && refused === undefined; n++) refused = codeOf(await here())
    expect(refused).toBe('QUOTA_EXHAUSTED')
    expect(codeOf(await there())).toBeUndefined()
  },
)
