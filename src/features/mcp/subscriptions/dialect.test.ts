import { describe, expect, it } from 'vitest'
import { everyRevision, type RawWire, rawWire } from '../../../../test/raw-wire.ts'
import { createServer, type Server } from '../../../server/server.ts'
import { type FakeClock, fakeClock } from '../../../testing/clock.ts'

async function desk(): Promise<{ server: Server; clock: FakeClock; wire: RawWire }> {
  const clock = fakeClock()
  const server = createServer({ name: 'desk', version: '1', revisions: everyRevision, clock })
  server.tool('first', { description: 'one' }, () => 'x')
  server.resource('note://first', { name: 'first' }, () => 'x')
  return { server, clock, wire: await rawWire(server.acceptor, 's3') }
}

async function told(wire: RawWire, method: string): Promise<unknown[]> {
  return (await wire.all(method)).map(({ params }) => params)
}

describe('tools/changed on the dialect (S3 §3.1)', () => {
  it('says what came and went since the list was last sent', async () => {
    const { server, clock, wire } = await desk()
    const second = server.tool('second', {}, () => 'x')
    await wire.ask('tools/list')
    clock.advance(0)
    server.tool('third', { description: 'new' }, () => 'x')
    second.remove()
    clock.advance(0)
    expect(await told(wire, 'tools/changed')).toEqual([{ added: [{ name: 'third', description: 'new' }], removed: ['second'] }])
  })

  it('compares with what was told last, not only with what was listed', async () => {
    const { server, clock, wire } = await desk()
    await wire.ask('tools/list')
    const second = server.tool('second', {}, () => 'x')
    clock.advance(0)
    second.remove()
    clock.advance(0)
    expect(await told(wire, 'tools/changed')).toEqual([
      { added: [{ name: 'second', description: '' }], removed: [] },
      { added: [], removed: ['second'] },
    ])
  })

  it('counts a tool that became another one as added', async () => {
    const { server, clock, wire } = await desk()
    const second = server.tool('second', {}, () => 'x')
    await wire.ask('tools/list')
    clock.advance(0)
    second.update({ description: 'better' })
    clock.advance(0)
    expect(await told(wire, 'tools/changed')).toEqual([{ added: [{ name: 'second', description: 'better' }], removed: [] }])
  })

  it('is not sent to a client that never listed, nor when all is as it was', async () => {
    const { server, clock, wire } = await desk()
    server.tool('second', {}, () => 'x').remove()
    clock.advance(0)
    await wire.ask('tools/list')
    server.tool('third', {}, () => 'x').remove()
    clock.advance(0)
    expect(await told(wire, 'tools/changed')).toEqual([])
    expect(await told(wire, 'notifications/tools/list_changed')).toEqual([])
  })
})

describe('resources/changed on the dialect (S3 §3.1)', () => {
  it('names a resource that the client has listed, when its content changes', async () => {
    const { server, clock, wire } = await desk()
    server.resourceUpdated('note://first')
    clock.advance(0)
    await wire.ask('resources/list')
    server.resourceUpdated('note://first')
    server.resourceUpdated('note://never')
    clock.advance(0)
    expect(await told(wire, 'resources/changed')).toEqual([{ updated: ['first'] }])
  })

  it('names it by URI when another one has the same name', async () => {
    const { server, clock, wire } = await desk()
    server.resource('memo://first', { name: 'first' }, () => 'x')
    await wire.ask('resources/list')
    clock.advance(0)
    server.resourceUpdated('note://first')
    clock.advance(0)
    expect(await told(wire, 'resources/changed')).toEqual([{ updated: ['note://first'] }])
  })

  it('names what came to the list and what left it', async () => {
    const { server, clock, wire } = await desk()
    const old = server.resource('note://old', { name: 'old' }, () => 'x')
    await wire.ask('resources/list')
    clock.advance(0)
    server.resource('note://new', { name: 'new' }, () => 'x')
    old.remove()
    clock.advance(0)
    expect(await told(wire, 'resources/changed')).toEqual([{ updated: ['new', 'old'] }])
  })

  it('knows also what only a template listed', async () => {
    const { server, clock, wire } = await desk()
    server.resource('leaf://{id}', { name: 'leaf', list: () => [{ uri: 'leaf://1', name: 'leaf one' }] }, () => 'x')
    await wire.ask('resources/list')
    clock.advance(0)
    server.resourceUpdated('leaf://1')
    clock.advance(0)
    expect(await told(wire, 'resources/changed')).toEqual([{ updated: ['leaf one'] }])
  })
})
