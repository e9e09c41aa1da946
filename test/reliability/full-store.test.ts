/** A store without room: nothing is done that should have been written down, everybody is told, and it goes on when there is room again. */
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createServer, type Server } from '../../src/server/index.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { type Store, StoreError } from '../../src/stores/store.ts'
import { eras, metaIn } from '../spec/consent.ts'
import { errorOf, type Frame, resultOf, speak, type Wire } from '../spec/wire.ts'

const ids = ['idempotency', 'transactions', 'state', 'problem', 'confirmation', 'permissions', 'events', 'operational']
const capabilities = { extensions: Object.fromEntries(ids.map(id => [`dev.vivarium/${id}`, {}])) }
const named = z.object({ id: z.string() })

/** Takes what makes no more of it: what is deleted, and looked at. */
function filling(): { readonly store: Store; full: boolean } {
  const inner = memoryStore()
  const made = {
    full: false,
    store: {
      get: key => inner.get(key),
      scan: (prefix, options) => inner.scan(prefix, options),
      read: (log, options) => inner.read(log, options),
      watch: (prefixes, signal) => inner.watch(prefixes, signal),
      close: () => inner.close(),
      commit: async ops => {
        if (made.full && ops.some(({ op }) => op === 'put' || op === 'append' || op === 'add'))
          throw new StoreError('full', 'There is no room')
        return inner.commit(ops)
      },
    } satisfies Store as Store,
  }
  return made
}

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

function world() {
  const disk = filling()
  const log: string[] = []
  const server = createServer({
    name: 'full',
    version: '1.0.0',
    store: disk.store,
    log: 'silent',
    limits: { rates: false },
    permissions: { grant: ({ scopes }) => scopes },
  })
  servers.push(server)
  const ran = (name: string) => () => {
    log.push(name)
    return 'done'
  }
  server.tool('do', { input: named, undo: { tool: 'undo' } }, ran('do'))
  server.tool('undo', { input: named, idempotent: true }, ran('undo'))
  server.tool('wipe', { input: named, confirm: { message: 'Wipe {id}?' } }, ran('wipe'))
  server.tool('scoped', { input: named, scopes: ['all'] }, ran('scoped'))
  server.tool(
    'paid',
    { input: named, quota: { units: 5, per: '1d' }, cost: { category: 'metered', estimatedUnits: 1 } },
    ran('paid'),
  )
  const happened = server.event('happened', { payload: named })
  return { server, disk, log, happened }
}

describe.each(eras)('without room, at %s', revision => {
  const call = (wire: Wire, name: string, meta?: Frame) =>
    wire.ask('tools/call', { name, arguments: { id: 'a' }, ...(meta === undefined ? {} : { _meta: meta }) })
  const refusedAs = (frame: Frame): unknown => {
    if (frame['error'] !== undefined) return errorOf(frame).data?.['code'] ?? errorOf(frame)
    return metaIn(frame, 'dev.vivarium/problem')['code']
  }
  const key = (idempotency_key: string): Frame => ({ 'dev.vivarium/idempotency': { idempotency_key } })
  const within = (transaction_id: string): Frame => ({ 'dev.vivarium/transactions': { transaction_id } })

  it('E5-7: a call under a key is refused and not made', async () => {
    const { server, disk, log } = world()
    const wire = await speak(server, revision, { capabilities })
    disk.full = true
    expect(refusedAs(await call(wire, 'do', key('k')))).toBe('SERVER_UNAVAILABLE')
    expect(log).toEqual([])
    disk.full = false
    expect(resultOf(await call(wire, 'do', key('k')))['isError']).toBeUndefined()
    expect(log).toEqual(['do'])
  })

  it('E5-13: no transaction is begun, no step made; what was made is committed or taken back when there is room', async () => {
    const { server, disk, log } = world()
    const wire = await speak(server, revision, { capabilities })
    await wire.ask('transaction/begin', { transaction_id: 'a' })
    await wire.ask('transaction/begin', { transaction_id: 'b' })
    for (const id of ['a', 'b']) await call(wire, 'do', within(id))
    disk.full = true
    expect(refusedAs(await wire.ask('transaction/begin', { transaction_id: 'c' }))).toBe('SERVER_UNAVAILABLE')
    expect(refusedAs(await call(wire, 'do', within('a')))).toBe('SERVER_UNAVAILABLE')
    expect(refusedAs(await wire.ask('transaction/commit', { transaction_id: 'a' }))).toBe('SERVER_UNAVAILABLE')
    expect(refusedAs(await wire.ask('transaction/rollback', { transaction_id: 'b' }))).toBe('SERVER_UNAVAILABLE')
    expect(log).toEqual(['do', 'do'])
    disk.full = false
    expect(resultOf(await wire.ask('transaction/commit', { transaction_id: 'a' }))['status']).toBe('committed')
    expect(resultOf(await wire.ask('transaction/rollback', { transaction_id: 'b' }))['status']).toBe('rolled_back')
    expect(log).toEqual(['do', 'do', 'undo'])
  })

  it('E4-4, E6-2, E3-5: nothing is granted, nothing confirmed, nothing paid for, and nothing runs that needs it', async () => {
    const { server, disk, log } = world()
    const wire = await speak(server, revision, { capabilities })
    const ask = () => wire.ask('permissions/negotiate', { requested_scopes: ['all'] })
    const { session } = resultOf(await ask()) as { session: Frame }
    const refused = await call(wire, 'wipe')
    const { confirmation_token } = metaIn(refused, 'dev.vivarium/confirmation')
    disk.full = true
    expect(refusedAs(await ask())).toBe('SERVER_UNAVAILABLE')
    const token = { 'dev.vivarium/permissions': { session_token: session['token'] } }
    expect(refusedAs(await call(wire, 'scoped', token))).toBe('SERVER_UNAVAILABLE')
    const yes = { 'dev.vivarium/confirmation': { confirmation_token, user_confirmed: true } }
    if (confirmation_token !== undefined) expect(refusedAs(await call(wire, 'wipe', yes))).toBe('SERVER_UNAVAILABLE')
    expect(refusedAs(await call(wire, 'paid'))).toBe('SERVER_UNAVAILABLE')
    expect(log).toEqual([])
  })

  it('E15-3: an event that cannot be kept is not told, and its author learns of it', async () => {
    const { server, disk, happened } = world()
    const wire = await speak(server, revision, { capabilities })
    disk.full = true
    await expect(happened.emit({ id: 'a' })).rejects.toThrow()
    const poll = () => wire.ask('event/poll', { events: ['happened'] })
    expect(refusedAs(await poll())).toBe('SERVER_UNAVAILABLE')
    disk.full = false
    const { cursor } = resultOf(await poll())
    await happened.emit({ id: 'b' })
    disk.full = true
    await expect(happened.emit({ id: 'c' })).rejects.toThrow()
    const polled = resultOf(await wire.ask('event/poll', { events: ['happened'], cursor }))['events'] as { payload: Frame }[]
    expect(polled.map(({ payload }) => payload['id'])).toEqual(['b'])
  })
})
