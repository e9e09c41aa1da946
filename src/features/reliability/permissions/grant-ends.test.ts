import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { consentWorld, permissions, places, problems } from '../../../../test/spec/consent.ts'
import { errorOf, type Frame, resultOf, speak, textOf, type Wire } from '../../../../test/spec/wire.ts'
import type { StoreKind } from '../../../../test/stores-under-test.ts'
import { jsonSchema } from '../../../core/schema/index.ts'
import type { Server, ServerOptions } from '../../../server/index.ts'

const world = consentWorld()
let ran: string[] = []
let rolledBack: (report: Frame) => void = () => {}
afterEach(async () => {
  ran = []
  await world.close()
})

const transactions = 'dev.vivarium/transactions'
const capabilities = { extensions: { [permissions]: {}, [problems]: {}, [transactions]: {} } }
const scopes = ['notes', 'write', 'delete']

function notes(kind: StoreKind, options: Partial<ServerOptions> = {}): Server {
  const server = world.serve(kind, {
    ...options,
    permissions: { grant: ({ scopes }) => scopes, ttl: '1h', idle: '10m' },
    transactions: { maxTimeout: '24h', onRolledBack: report => rolledBack({ ...report }) },
  })
  const input = jsonSchema({ type: 'object', properties: { id: { type: 'string' } } })
  const run = (name: string) => () => ran.push(name) && name
  server.tool('write', { input, scopes: ['write'], undo: { tool: 'erase' } }, run('write'))
  server.tool('erase', { input, scopes: ['delete'] }, run('erase'))
  server.resource('note://1', { name: 'note', scopes: ['notes'] }, () => 'text')
  server.resource('note://2', { name: 'open' }, () => 'text')
  return server
}

const held = (token: unknown, params: Frame = {}): Frame => ({
  ...params,
  _meta: { [permissions]: { session_token: token }, ...(params['_meta'] as Frame) },
})
async function tokenFor(wire: Wire): Promise<unknown> {
  const { session } = resultOf(await wire.ask('permissions/negotiate', { requested_scopes: scopes }))
  return (session as Frame)['token']
}
const revoke = async (server: Server): Promise<void> => {
  for (const { session } of await server.permissions.sessions()) await server.permissions.revoke(session)
}
/** How a grant ends, and what is said of it. */
const ways = [
  ['revoked', revoke, 'The grant that allowed it was revoked'],
  ['expired', async () => world.clock.forward(3_600_001), 'The grant that allowed it has expired'],
  ['not used', async () => world.clock.forward(600_001), 'The grant that allowed it expired because it was not used'],
] as const

describe.each(places)('at %s on %s', (revision, kind) => {
  it.each(ways)('X5: a grant that is %s ends what was subscribed to by it, with the reason', async (_, end, reason) => {
    const server = notes(kind)
    const wire = await speak(server, revision, { capabilities })
    const token = await tokenFor(wire)
    if (revision === '2025-11-25') {
      expect(errorOf(await wire.ask('resources/subscribe', { uri: 'note://1' })).message).toContain('notes')
      resultOf(await wire.ask('resources/subscribe', held(token, { uri: 'note://1' })))
      resultOf(await wire.ask('resources/subscribe', { uri: 'note://2' }))
      server.resourceUpdated('note://1')
      await wire.next(frame => frame['method'] === 'notifications/resources/updated')
      await end(server)
      const told = await wire.next(frame => frame['method'] === 'notifications/permissions/ended')
      expect(told['params']).toEqual({ reason, uris: ['note://1'] })
    } else {
      const id = wire.begin('subscriptions/listen', held(token, { notifications: { resourceSubscriptions: ['note://1'] } }))
      const open = await wire.next(frame => frame['method'] === 'notifications/subscriptions/acknowledged')
      expect(open['params']).toMatchObject({ notifications: { resourceSubscriptions: ['note://1'] } })
      server.resourceUpdated('note://1')
      await wire.next(frame => frame['method'] === 'notifications/resources/updated')
      await end(server)
      const told = await wire.next(frame => frame['method'] === 'notifications/cancelled')
      expect(told['params']).toMatchObject({ requestId: id, reason })
      expect(resultOf(await wire.next(frame => frame['id'] === id))['_meta']).toMatchObject({ [permissions]: { ended: reason } })
    }
    server.resourceUpdated('note://1')
    server.resourceUpdated('note://2')
    if (revision === '2025-11-25') await wire.next(({ params }) => (params as Frame | undefined)?.['uri'] === 'note://2')
    const heard = (await wire.quiet()).filter(({ params }) => (params as Frame | undefined)?.['uri'] === 'note://1')
    expect(heard).toHaveLength(1)
  })

  it.runIf(revision === '2026-07-28')(
    'X5: what is listened to without a grant gets nothing that needs one, and does not end with one',
    async () => {
      const server = notes(kind)
      const wire = await speak(server, revision, { capabilities })
      await tokenFor(wire)
      const id = wire.begin('subscriptions/listen', { notifications: { resourceSubscriptions: ['note://1', 'note://2'] } })
      const open = await wire.next(frame => frame['method'] === 'notifications/subscriptions/acknowledged')
      expect(open['params']).toMatchObject({ notifications: { resourceSubscriptions: ['note://2'] } })
      await revoke(server)
      server.resourceUpdated('note://2')
      await wire.next(frame => frame['method'] === 'notifications/resources/updated')
      expect(wire.heard.some(frame => frame['id'] === id)).toBe(false)
    },
  )

  it.each(ways)('X5: a grant that is %s rolls its open transactions back, with the authority of then', async (_, end, reason) => {
    const server = notes(kind)
    const wire = await speak(server, revision, { capabilities })
    const token = await tokenFor(wire)
    const step = (id: string) =>
      held(token, { name: 'write', arguments: { id }, _meta: { [transactions]: { transaction_id: 'tx' } } })
    resultOf(await wire.ask('transaction/begin', { transaction_id: 'tx', timeout_seconds: 86_400 }))
    expect(textOf(await wire.ask('tools/call', step('a')))).toBe('write')
    const report = new Promise<Frame>(resolve => {
      rolledBack = resolve
    })
    await end(server)
    expect(await report).toMatchObject({ transaction_id: 'tx', status: 'rolled_back', reason })
    expect(ran).toEqual(['write', 'erase'])
    const after = await wire.ask('transaction/commit', { transaction_id: 'tx' })
    expect(errorOf(after).data).toMatchObject({ code: 'TRANSACTION_CONFLICT' })
  })

  it('X5: a transaction that was begun under a grant takes no step and no commit after its end', async () => {
    const server = notes(kind)
    server.tool('free', { undo: { tool: 'free' } }, () => ran.push('free') && 'free')
    const wire = await speak(server, revision, { capabilities })
    const token = await tokenFor(wire)
    resultOf(await wire.ask('transaction/begin', held(token, { transaction_id: 'tx' })))
    await revoke(server)
    const free = await wire.ask('tools/call', { name: 'free', _meta: { [transactions]: { transaction_id: 'tx' } } })
    expect(resultOf(free)['isError']).toBe(true)
    expect(errorOf(await wire.ask('transaction/commit', { transaction_id: 'tx' })).data).toMatchObject({
      code: 'TRANSACTION_CONFLICT',
    })
    expect(ran).toEqual([])
  })

  it('X5: what a grant gave is no longer there for a compensation beyond what was captured', async () => {
    const server = notes(kind)
    const wire = await speak(server, revision, { capabilities })
    const { session } = resultOf(await wire.ask('permissions/negotiate', { requested_scopes: ['write'] }))
    const { token } = session as Frame
    resultOf(await wire.ask('transaction/begin', { transaction_id: 'tx' }))
    const step = held(token, { name: 'write', arguments: {}, _meta: { [transactions]: { transaction_id: 'tx' } } })
    expect(textOf(await wire.ask('tools/call', step))).toBe('write')
    const report = resultOf(await wire.ask('transaction/rollback', { transaction_id: 'tx' }))
    expect(report).toMatchObject({ status: 'partially_rolled_back', steps: [{ error: { code: 'SCOPE_INSUFFICIENT' } }] })
    expect(ran).toEqual(['write'])
  })
})

it.each(['2025-11-25', '2026-07-28'] as const)(
  'X5: at %s what one process opened ends with a grant that another one ended',
  async revision => {
    const folder = mkdtempSync(join(tmpdir(), 'vivarium-ends-'))
    try {
      const shared = { store: `sqlite:${join(folder, 'store.db')}`, secret: 'an only secret of at least 32 characters' }
      const [one, two] = [notes('sqlite', shared), notes('sqlite', shared)]
      const wire = await speak(one, revision, { capabilities })
      const token = await tokenFor(wire)
      const watch = { notifications: { resourceSubscriptions: ['note://1'] } }
      if (revision === '2025-11-25') resultOf(await wire.ask('resources/subscribe', held(token, { uri: 'note://1' })))
      else {
        wire.begin('subscriptions/listen', held(token, watch))
        await wire.next(frame => frame['method'] === 'notifications/subscriptions/acknowledged')
      }
      resultOf(await wire.ask('transaction/begin', held(token, { transaction_id: 'tx' })))
      expect(
        textOf(await wire.ask('tools/call', held(token, { name: 'write', _meta: { [transactions]: { transaction_id: 'tx' } } }))),
      ).toBe('write')
      const report = new Promise<Frame>(resolve => {
        rolledBack = resolve
      })
      await revoke(two)
      const ends = new Set(['notifications/permissions/ended', 'notifications/cancelled'])
      expect((await wire.next(({ method }) => ends.has(method as string)))['params']).toMatchObject({ reason: ways[0][2] })
      // By whichever of the two.
      expect(await report).toMatchObject({ status: 'rolled_back', reason: ways[0][2] })
      expect(ran).toEqual(['write', 'erase'])
    } finally {
      await world.close()
      rmSync(folder, { recursive: true, force: true })
    }
  },
)
