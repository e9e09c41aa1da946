import { afterEach, describe, expect, it } from 'vitest'
import { consentWorld, metaIn, places, problems } from '../../../../test/spec/consent.ts'
import { type Frame, speak, textOf, type Wire } from '../../../../test/spec/wire.ts'
import { type StoreKind, storeKinds } from '../../../../test/stores-under-test.ts'
import { jsonSchema } from '../../../core/schema/index.ts'
import type { Server } from '../../../server/index.ts'
import type { ConfirmFacts } from './server.ts'

const world = consentWorld()
let ran: unknown[] = []
afterEach(async () => {
  ran = []
  await world.close()
})

const input = jsonSchema({ type: 'object', properties: { id: { type: 'string' } }, required: ['id'] })
const asks = { extensions: { [problems]: {} }, elicitation: { form: {} } }

function tracker(kind: StoreKind, confirm: ConfirmFacts): Server {
  const server = world.serve(kind)
  server.tool('delete_ticket', { input, confirm: { message: 'Delete {id}?', ...confirm } }, args => {
    ran.push(args)
    return 'deleted'
  })
  return server
}

const call = (wire: Wire, id = 'T-1'): Promise<Frame> => wire.ask('tools/call', { name: 'delete_ticket', arguments: { id } })
const codeOf = (frame: Frame): unknown => metaIn(frame, problems)['code']

describe.each(places)('a call that stands in line, at %s on %s', (revision, kind) => {
  const open = (server: Server): Promise<Wire> => speak(server, revision, { capabilities: asks })

  it('is refused until it is approved, then runs once', async () => {
    const server = tracker(kind, { channel: 'queue' })
    const wire = await open(server)
    expect(codeOf(await call(wire))).toBe('CONFIRMATION_REQUIRED')
    await call(wire)
    const [waits, ...others] = await server.confirmations.waiting()
    expect(others).toEqual([])
    expect(waits).toMatchObject({
      tool: 'delete_ticket',
      message: 'tracker: delete_ticket. Delete T-1?',
      arguments: { id: 'T-1' },
    })
    expect(await server.confirmations.approve(waits?.id ?? '')).toBe(true)
    expect(await server.confirmations.approve(waits?.id ?? '')).toBe(false)
    expect(textOf(await call(wire))).toBe('deleted')
    expect(codeOf(await call(wire))).toBe('CONFIRMATION_REQUIRED')
    expect(ran).toEqual([{ id: 'T-1' }])
  })

  it('is approved for its own arguments alone', async () => {
    const server = tracker(kind, { channel: 'queue' })
    const wire = await open(server)
    await call(wire, 'T-1')
    const [waits] = await server.confirmations.waiting()
    await server.confirmations.approve(waits?.id ?? '')
    expect(codeOf(await call(wire, 'T-2'))).toBe('CONFIRMATION_REQUIRED')
    expect(ran).toEqual([])
  })

  it('goes on by itself where it waits for the answer', async () => {
    const server = tracker(kind, { channel: 'queue', wait: '30s' })
    const wire = await open(server)
    const answer = call(wire)
    await expect.poll(async () => (await server.confirmations.waiting()).length).toBe(1)
    await server.confirmations.approve((await server.confirmations.waiting())[0]?.id ?? '')
    expect(textOf(await answer)).toBe('deleted')
  })

  it('is told to a caller that asked for progress while it waits, and whether the caller still waits is known', async () => {
    const server = tracker(kind, { channel: 'queue', wait: '30s' })
    const wire = await open(server)
    const params = { name: 'delete_ticket', arguments: { id: 'T-1' }, _meta: { progressToken: 'p' } }
    const id = wire.begin('tools/call', params)
    const told = await wire.next(({ method }) => method === 'notifications/progress')
    const spoken = revision !== '2024-11-05' && { message: 'delete_ticket waits for approval by the operator of the server' }
    expect(told['params']).toMatchObject({ progressToken: 'p', progress: 1, ...spoken })
    const waits = async (): Promise<unknown> => (await server.confirmations.waiting())[0]?.callerWaits
    await expect.poll(waits).toBe(true)
    wire.tell('notifications/cancelled', { requestId: id })
    await expect.poll(waits).toBe(false)
    await server.confirmations.approve((await server.confirmations.waiting())[0]?.id ?? '')
    expect([textOf(await call(wire)), ran]).toEqual(['deleted', [{ id: 'T-1' }]])
  })

  it('is over when it is refused, also for those who make it again', async () => {
    const server = tracker(kind, { channel: 'queue', wait: '30s' })
    const wire = await open(server)
    const answer = call(wire)
    await expect.poll(async () => (await server.confirmations.waiting()).length).toBe(1)
    expect(await server.confirmations.refuse((await server.confirmations.waiting())[0]?.id ?? '')).toBe(true)
    expect([codeOf(await answer), codeOf(await call(wire))]).toEqual(['CONFIRMATION_DECLINED', 'CONFIRMATION_DECLINED'])
    expect(ran).toEqual([])
  })
})

describe('either way', () => {
  it('asks the client that can ask its user, and stands in line for one that cannot', async () => {
    const server = tracker('memory', { channel: 'either' })
    const yes = { 'elicitation/create': () => ({ action: 'accept', content: { confirm: true } }) }
    const able = await speak(server, '2025-11-25', { capabilities: asks, answers: yes })
    expect(textOf(await call(able))).toBe('deleted')
    const unable = await speak(server, '2025-11-25', { capabilities: { extensions: { [problems]: {} } } })
    expect(codeOf(await call(unable))).toBe('CONFIRMATION_REQUIRED')
    expect(await server.confirmations.waiting()).toHaveLength(1)
  })
})

describe('which calls', () => {
  it('are asked about is said by their arguments, and so is how', async () => {
    const when = ({ id }: Frame) => id !== 'T-1' && { message: 'Really {id}?' }
    const server = tracker('memory', { channel: 'queue', when })
    const wire = await speak(server, '2026-07-28', { capabilities: asks })
    expect(textOf(await call(wire, 'T-1'))).toBe('deleted')
    await call(wire, 'T-2')
    expect((await server.confirmations.waiting())[0]?.message).toBe('tracker: delete_ticket. Really T-2?')
  })

  it('are all asked about where that cannot be said', async () => {
    const when = (): boolean => {
      throw new Error('broken')
    }
    const wire = await speak(tracker('memory', { channel: 'queue', when }), '2026-07-28', { capabilities: asks })
    expect(codeOf(await call(wire))).toBe('CONFIRMATION_REQUIRED')
  })
})

describe.each(storeKinds)('long arguments, on %s', kind => {
  const long = (characters: number): string => 'x'.repeat(characters)

  it('are kept whole up to 1 MiB, beside the list, and are gone with the answer', async () => {
    const server = tracker(kind, { channel: 'queue', message: 'Delete it?' })
    const wire = await speak(server, '2026-07-28', { capabilities: asks })
    const id = long(1_000_000)
    await call(wire, id)
    const [waits] = await server.confirmations.waiting()
    expect(waits).not.toHaveProperty('arguments')
    expect(waits?.length).toBe(JSON.stringify({ id }).length)
    expect(await server.confirmations.argumentsOf(waits?.id ?? '')).toEqual({ id })
    expect(await server.confirmations.approve(waits?.id ?? '')).toBe(true)
    expect(await server.confirmations.argumentsOf(waits?.id ?? '')).toBeUndefined()
    expect(textOf(await call(wire, id))).toBe('deleted')
    expect(ran).toEqual([{ id }])
  })

  it('beyond 1 MiB are refused at once, by name, for nobody could approve them', async () => {
    const server = tracker(kind, { channel: 'queue', message: 'Delete it?' })
    const wire = await speak(server, '2026-07-28', { capabilities: asks })
    expect(codeOf(await call(wire, long(1024 * 1024)))).toBe('PAYLOAD_TOO_LARGE')
    expect(await server.confirmations.waiting()).toEqual([])
  })

  it('have a share of their own, so that they cannot fill the store', async () => {
    const server = tracker(kind, { channel: 'queue', message: 'Delete it?' })
    const wire = await speak(server, '2026-07-28', { capabilities: asks })
    const codes: unknown[] = []
    for (let n = 0; n < 65; n++) codes.push(codeOf(await call(wire, `${n}${long(17_000)}`)))
    expect(codes).toContain('QUOTA_EXHAUSTED')
    expect(codeOf(await call(wire, 'short'))).toBe('CONFIRMATION_REQUIRED')
  })
})

describe.each(storeKinds)('the answer to a call, on %s', kind => {
  it('counts once, and who gave it is known afterwards, also when the call has run', async () => {
    const server = tracker(kind, { channel: 'queue' })
    const wire = await speak(server, '2026-07-28', { capabilities: asks })
    await call(wire)
    const id = (await server.confirmations.waiting())[0]?.id ?? ''
    const both = await Promise.all([server.confirmations.approve(id, 'ann'), server.confirmations.refuse(id, 'bob')])
    expect(both.filter(Boolean)).toHaveLength(1)
    await call(wire)
    const answered = await server.confirmations.answered(id)
    expect(answered).toMatchObject(both[0] ? { yes: true, by: 'ann' } : { yes: false, by: 'bob' })
    expect(await server.confirmations.answered('nobody.nothing')).toBeUndefined()
  })
})
