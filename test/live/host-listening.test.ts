/** MCP Live where servers send no requests (A17): the host's half of the listen binding, judged by a raw stateless server. */
import { expect, test } from 'vitest'
import { fakeClock } from '../../src/testing/clock.ts'
import { until } from '../until.ts'
import { attach, host, mcpl, push, serve } from './raw/host.ts'
import { type Frame, Refusal } from './raw/script.ts'

const carrier = 'http 2026-07-28'
const listens = (raw: Awaited<ReturnType<typeof serve>>) => raw.script.of('live/listen').map(({ params }) => params as Frame)
const answers = (raw: Awaited<ReturnType<typeof serve>>) => raw.script.of('live/answer').map(({ params }) => params as Frame)
const deliver = (deliveryId: string, cursor: string, params: unknown, method = 'push/event', answer = true) =>
  JSON.stringify({ jsonrpc: '2.0', method: 'live/deliver', params: { deliveryId, cursor, answer, method, params } })

test('A17: after the hello the host listens, with its selection, what it can do, and a name that it repeats', async () => {
  const raw = await serve(carrier, { mcpl, answers: { 'tools/call': () => ({ content: [] }) } })
  const { client } = await attach(raw)
  await client.callTool('any', {}, { live: { checkpoint: 'c-1' } })
  for await (const _ of client.tools());
  const [listen] = listens(raw)
  expect(listen).toMatchObject({
    hostId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    policy: { enabled: expect.arrayContaining(['lab.push']), disabled: ['lab.off'], effectiveCapabilities: expect.any(Array) },
    host: { version: '0.2', pushEvents: true },
  })
  expect(listen).not.toHaveProperty('after')
  const { hostId, policy } = listen as Frame
  const meta = (method: string) => ((raw.script.of(method)[0]?.['params'] ?? {}) as Frame)['_meta']
  expect(meta('tools/call')).toMatchObject({ 'dev.vivarium/live': { hostId, policy, checkpoint: 'c-1' } })
  expect(meta('tools/list')).toMatchObject({ 'dev.vivarium/live': { hostId, policy } })
  expect(meta('live/listen')).toMatchObject({
    'io.modelcontextprotocol/clientCapabilities': { extensions: { 'dev.vivarium/live': { version: '0.2' } } },
  })
})

test('A17: a stream that ends is opened again behind the last delivery that needs no more care', async () => {
  const { raw, pushed } = await host(carrier)
  raw.write(deliver('d-1', 'cur-1', push({ eventId: 'e-1' })))
  await raw.answerTo('d-1')
  await raw.script.until(() => answers(raw).length === 1)
  raw.hangUp?.()
  await raw.script.hears('live/listen', 2)
  expect(listens(raw)[1]).toMatchObject({ after: 'cur-1', hostId: listens(raw)[0]?.['hostId'] })
  expect(await raw.ask('push/event', push({ eventId: 'e-2' }))).toHaveProperty('result.accepted', true)
  expect(pushed.map(({ eventId }) => eventId)).toEqual(['e-1', 'e-2'])
})

test('A17: the cursor waits for the oldest delivery that is not answered', async () => {
  const slow = Promise.withResolvers<void>()
  const { raw } = await host(carrier, {
    handlers: {
      onPush: async ({ eventId }) => {
        if (eventId === 'slow') await slow.promise
        return { accepted: true }
      },
    },
  })
  raw.write(deliver('d-1', 'cur-1', push({ eventId: 'slow' })))
  raw.write(deliver('d-2', 'cur-2', push({ eventId: 'quick' })))
  await raw.answerTo('d-2')
  raw.hangUp?.()
  await raw.script.hears('live/listen', 2)
  // Where the stream began: nothing before that needs care.
  expect(listens(raw)[1]).toMatchObject({ after: '0' })
  slow.resolve()
  await raw.answerTo('d-1')
  // That the answer has arrived is known only a moment after it was heard.
  await until(async () => {
    raw.hangUp?.()
    await raw.script.hears('live/listen', listens(raw).length + 1)
    expect(listens(raw).at(-1)).toMatchObject({ after: 'cur-2' })
  })
})

test('A17: a delivery that comes again is worked on once, and its answer is given again', async () => {
  const { raw, pushed } = await host(carrier)
  raw.write(deliver('d-1', 'cur-1', push()))
  raw.write(deliver('d-1', 'cur-1', push()))
  await raw.answerTo('d-1')
  raw.write(deliver('d-1', 'cur-1', push()))
  await raw.script.until(() => answers(raw).length === 2)
  expect(answers(raw).map(({ deliveryId, result }) => [deliveryId, result])).toEqual([
    ['d-1', { accepted: true, inferenceId: 'inf-1' }],
    ['d-1', { accepted: true, inferenceId: 'inf-1' }],
  ])
  expect(pushed).toHaveLength(1)
})

test('A17: errors travel inside the answer, with the numbers of MCP Live', async () => {
  const { raw } = await host(carrier)
  raw.write(deliver('d-1', '1', push({ featureSet: 'lab.off' })))
  raw.write(deliver('d-2', '2', push({ featureSet: 'nobody' })))
  raw.write(deliver('d-3', '3', {}))
  raw.write(deliver('d-4', '4', {}, 'no/such'))
  for (const id of ['d-1', 'd-2', 'd-3', 'd-4']) await raw.answerTo(id)
  const codes = answers(raw).map(({ deliveryId, error }) => [deliveryId, (error as Frame)['code']])
  expect(codes.sort()).toEqual([
    ['d-1', -32001],
    ['d-2', -32003],
    ['d-3', -32602],
    ['d-4', -32601],
  ])
})

test('A17: another selection opens another stream', async () => {
  let enabled = ['lab.push']
  const { raw, live } = await host(carrier, {
    handlers: { select: () => ({ enabled, disabled: [], canEnable: () => true }) },
  })
  enabled = ['lab.hooks']
  await live.update()
  expect(listens(raw).map(({ policy }) => (policy as Frame)['enabled'])).toEqual([['lab.push'], ['lab.hooks']])
  expect(await raw.ask('push/event', push())).toHaveProperty('error.code', -32001)
})

test('A17: a server that stays silent on the stream holds nobody up for longer than 15 s', async () => {
  const clock = fakeClock()
  const raw = await serve(carrier, { mcpl })
  raw.mute = true
  const connecting = attach(raw, { connecting: { clock } })
  await raw.script.hears('live/listen')
  clock.advance(15_000)
  const { client } = await connecting
  expect(client.live?.dialect.carrier).toBe('listen')
})

test('A17: a server that knows no live/listen is a plain one, and that is said', async () => {
  const raw = await serve(carrier, { mcpl })
  raw.refuse = new Refusal(-32601, 'Method not found: live/listen')
  const { client, diagnosed } = await attach(raw)
  await raw.script.hears('live/listen')
  await until(() => expect(client.live).toBe(undefined))
  expect(diagnosed.map(({ code }) => code)).toEqual(['LISTEN_REFUSED'])
  for await (const _ of client.tools());
})

test('A17: experimental.mcpl without the extension is no binding: the server is a plain one', async () => {
  const raw = await serve(carrier, { capabilities: { experimental: { mcpl } } })
  const { client } = await attach(raw)
  expect([client.live, listens(raw)]).toEqual([undefined, []])
})
