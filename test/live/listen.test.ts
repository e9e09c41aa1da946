/** MCP Live where a server sends no requests (docs/reference/live-binding.md): listening, deliveries and answers, on every carrier. */
import { afterEach, describe, expect, it } from 'vitest'
import { liveFixture } from './fixture.ts'
import type { Carrier } from './pipes.ts'
import { everySet, given, type RawHost, type RawHostOptions, rawHost } from './raw-host.ts'

const open: RawHost[] = []
afterEach(async () => {
  for (const host of open.splice(0)) await host.close()
})

async function hosted(carrier: Carrier, options?: RawHostOptions): Promise<RawHost> {
  const host = await rawHost(carrier, { ...options, stateless: true })
  open.push(host)
  return host
}

const deliveries = (host: RawHost) => host.frames.filter(({ method }) => method === 'live/deliver').map(({ params }) => params)

describe.each(['stdio', 'websocket', 'stateless'] as const)('A17: a host that listens on %s', place => {
  it('is told that it is heard, and gets requests of the server as deliveries', async () => {
    const host = await hosted(place)
    expect(host.frames.find(({ method }) => method === 'live/listening')).toMatchObject({
      params: { cursor: '0', redelivers: 0 },
    })
    const pushing = host.call('push', { content: 'x', wait: true })
    const push = await host.next('push/event')
    expect(deliveries(host)).toEqual([
      { deliveryId: push.id, cursor: '1', answer: true, method: 'push/event', params: push.params },
    ])
    await push.answer({ accepted: true, inferenceId: 'i' })
    expect(given(await pushing)).toMatchObject({ answer: { accepted: true, inferenceId: 'i' } })
    expect(host.frames.filter(({ id, method }) => id !== undefined && method !== undefined)).toEqual([])
  })

  it('gets again what it left unanswered, under the same ids', async () => {
    const host = await hosted(place)
    const inferring = host.call('infer', { messages: 'x' })
    const first = await host.next('inference/request')
    host.deafen()
    expect(await host.relisten()).toMatchObject({ redelivers: 1 })
    const again = await host.next('inference/request')
    expect([again.id, again.params]).toEqual([first.id, first.params])
    await again.answer({ content: 'Yes', model: 'm', finishReason: 'end_turn', usage: {} })
    expect(given(await inferring)).toMatchObject({ result: { content: 'Yes' } })
    expect(await host.relisten()).toMatchObject({ redelivers: 0 })
    const late = await host.ask('live/answer', { deliveryId: String(first.id), result: {} })
    expect(late['result']).toMatchObject({ known: false })
  })

  it('gets what was only told after the cursor that it names', async () => {
    const host = await hosted(place)
    await host.call('sets', { add: 'late.one' })
    await host.next('featureSets/changed')
    await host.call('sets', { add: 'late.two' })
    await host.next('featureSets/changed')
    expect(await host.relisten('1')).toMatchObject({ redelivers: 1 })
    expect((await host.next('featureSets/changed')).params).toMatchObject({ added: { 'late.two': {} } })
    expect(await host.relisten('2')).toMatchObject({ redelivers: 0 })
  })

  it('is let go by a newer stream of its own', async () => {
    const host = await hosted(place)
    await host.relisten()
    await expect
      .poll(() => host.frames.map(({ result }) => result))
      .toContainEqual(expect.objectContaining({ reason: 'replaced' }))
  })

  it('is asked for leave in the middle of a call', async () => {
    const host = await hosted(place)
    const editing = host.call('edit', { path: '/etc/hosts' })
    await (await host.next('scope/elevate')).answer({ approved: true })
    expect(given(await editing)).toMatchObject({ edited: ['/etc/hosts'] })
  })
})

describe('A17: on HTTP', () => {
  it('a host selects by the policy of each request', async () => {
    const host = await hosted('stateless', { select: { enabled: [], disabled: everySet } })
    const meta = { 'dev.vivarium/live': { policy: { enabled: ['memory.proactive'], disabled: [] } } }
    await host.call('push', { content: 'x' }, { _meta: meta })
    await host.next('push/event')
  })

  it('whoever did not declare the extension cannot listen or answer', async () => {
    const host = await hosted('stateless', { mcpl: false })
    for (const method of ['live/listen', 'live/answer'])
      expect(await host.ask(method, { deliveryId: 'x' })).toMatchObject({ error: { code: -32021 } })
  })

  it('nobody answers for another: an id that was never given out is unknown', async () => {
    const host = await hosted('stateless')
    const answer = await host.ask('live/answer', { deliveryId: crypto.randomUUID(), result: { accepted: true } })
    expect(answer['result']).toMatchObject({ known: false })
  })

  it('a server that closes lets those who listen go in good order', async () => {
    const server = liveFixture()
    const host = await hosted('stateless', { serve: () => server })
    await server.close()
    await expect
      .poll(() => host.frames.map(({ result }) => result))
      .toContainEqual(expect.objectContaining({ reason: 'closing' }))
  })

  it('each of several hosts hears what is pushed, and one that has a set off does not', async () => {
    const server = liveFixture()
    const serve = () => server
    const one = await hosted('stateless', { serve })
    const two = await hosted('websocket', { serve })
    const off = await hosted('stateless', { serve, select: { enabled: [], disabled: everySet } })
    const pushing = one.call('push', { content: 'x', wait: true })
    await (await one.next('push/event')).answer({ accepted: false, reason: 'quiet hours' })
    await (await two.next('push/event')).answer({ accepted: true, inferenceId: 'two' })
    expect(given(await pushing)).toMatchObject({ answer: { accepted: true, inferenceId: 'two' } })
    await off.quiet()
    expect(off.said).toEqual([])
  })
})
