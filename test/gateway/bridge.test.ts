import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { type ConnectOptions, connect } from '../../src/client/index.ts'
import { createServer, type RevisionId } from '../../src/server/index.ts'
import { inMemory, openGateway } from './open.ts'

/** A server whose tools ask whoever called, and count how often they were really called. */
function asker(revisions: readonly RevisionId[]) {
  const server = createServer({ name: 'asker', version: '1.0.0', revisions, limits: { rates: false } })
  const seen: string[] = []
  const gates = new Map<string, () => void>()
  server.tool('order', { input: z.object({ who: z.string() }) }, async ({ who }, ctx) => {
    seen.push(who)
    const answer = await ctx.elicit({ message: `For ${who}?`, schema: z.object({ fish: z.string() }) })
    return answer.action === 'accept' ? `${who}: ${answer.content.fish}` : `${who}: ${answer.action}`
  })
  server.tool('wait', { input: z.object({ who: z.string() }) }, async ({ who }, ctx) => {
    seen.push(who)
    await new Promise<void>(resolve => {
      gates.set(who, resolve)
      ctx.signal.addEventListener('abort', () => resolve())
    })
    return who
  })
  server.tool('pay', {}, async (_, ctx) => {
    const { action, elicitationId } = await ctx.elicit({ message: 'Pay', url: 'https://example.com/pay' })
    ctx.elicitationDone(elicitationId)
    return action
  })
  onTestFinished(() => server.close())
  return { server, seen, gates }
}

const answering = (who: string): ConnectOptions => ({
  onElicit: ({ message }) => ({ action: 'accept', content: { fish: message === `For ${who}?` ? 'cod' : 'not mine' } }),
})

test('a call whose caller goes away with a question is made once, and the answer joins it', async () => {
  const { server, seen } = asker(['2025-11-25'])
  const { client } = await openGateway({ asker: inMemory(server) })
  const ada = await client('2026-07-28', answering('ada'))
  expect((await ada.callTool('order', { who: 'ada' })).text).toBe('ada: cod')
  expect(seen).toEqual(['ada'])
})

test('over HTTP each of many callers gets the questions of its own call', async () => {
  const { server } = asker(['2025-06-18'])
  const { url } = await server.listen()
  const { client } = await openGateway({ asker: url })
  const names = Array.from({ length: 12 }, (_, i) => `caller-${i}`)
  const wires: readonly RevisionId[] = ['2025-06-18', '2025-11-25', '2026-07-28']
  const texts = await Promise.all(
    names.map(async (who, i) => {
      const each = await client(wires[i % 3] as RevisionId, answering(who))
      return (await each.callTool('order', { who })).text
    }),
  )
  expect(texts).toEqual(names.map(who => `${who}: cod`))
})

test('on a pipe a question waits until it is certain whose it is', async () => {
  const { server, seen, gates } = asker(['2025-11-25'])
  const { client } = await openGateway({ asker: inMemory(server) })
  const [ada, bob] = [await client('2025-11-25', answering('ada')), await client('2026-07-28', answering('bob'))]
  const waiting = bob.callTool('wait', { who: 'bob' })
  await expect.poll(() => seen).toContain('bob')
  const order = ada.callTool('order', { who: 'ada' })
  await expect.poll(() => seen).toContain('ada')
  gates.get('bob')?.()
  expect((await waiting).text).toBe('bob')
  expect((await order).text).toBe('ada: cod')
})

test('after that callers take turns on the pipe, and each is asked its own', async () => {
  const { server, seen, gates } = asker(['2025-11-25'])
  const { client } = await openGateway({ asker: inMemory(server) })
  const [ada, bob] = [await client('2025-11-25', answering('ada')), await client('2025-06-18', answering('bob'))]
  const waiting = bob.callTool('wait', { who: 'bob' })
  await expect.poll(() => seen).toContain('bob')
  const first = ada.callTool('order', { who: 'ada' })
  await expect.poll(() => seen).toContain('ada')
  gates.get('bob')?.()
  await Promise.all([waiting, first])
  const both = await Promise.all([ada.callTool('order', { who: 'ada' }), bob.callTool('order', { who: 'bob' })])
  expect(both.map(({ text }) => text)).toEqual(['ada: cod', 'bob: cod'])
})

test('a question outside any call is refused by name', async () => {
  const server = createServer({ name: 'early', version: '1.0.0', revisions: ['2025-11-25'] })
  onTestFinished(() => server.close())
  const { client } = await openGateway({ early: inMemory(server) })
  await client('2025-11-25')
  const { listRoots } = await import('../../src/features/mcp/roots/messages.ts')
  const [conversation] = server.engine.connected
  if (conversation === undefined) throw new Error('Nobody is connected')
  await expect(server.engine.call(conversation, listRoots, {})).rejects.toThrow(/no client has an open call/)
})

test('a caller that cannot be asked is told so, and the server too', async () => {
  const { server } = asker(['2025-11-25'])
  const { client } = await openGateway({ asker: inMemory(server) })
  const old = await client('2025-03-26')
  expect(await old.callTool('order', { who: 'old' })).toMatchObject({
    isError: true,
    text: expect.stringContaining('elicitation'),
  })
  const bare = await client('2026-07-28')
  expect(await bare.callTool('order', { who: 'bare' })).toMatchObject({ isError: true })
})

test('the caller hears that the page it was sent to has done its work', async () => {
  const { server } = asker(['2025-11-25'])
  const { client } = await openGateway({ asker: inMemory(server) })
  const [sent, done]: [string[], string[]] = [[], []]
  const ada = await client('2025-11-25', {
    onElicit: question => {
      if (question.mode === 'url') sent.push(question.elicitationId ?? '')
      return { action: 'accept' }
    },
    onElicitationComplete: id => void done.push(id),
  })
  expect((await ada.callTool('pay')).text).toBe('accept')
  await expect.poll(() => done).toEqual(sent)
})

test('a server that is gone hides its own tools alone, calls of them say so, and it comes back by itself', async () => {
  const [kept, lost] = [createServer({ name: 'kept', version: '1.0.0' }), createServer({ name: 'lost', version: '1.0.0' })]
  kept.tool('stay', {}, () => 'here')
  lost.tool('go', {}, () => 'there')
  const { port } = await lost.listen()
  onTestFinished(() => kept.close())
  const { gateway, client } = await openGateway({ kept: inMemory(kept), lost: `http://127.0.0.1:${port}/mcp` })
  const ada = await client('2025-11-25')
  const names = async () => {
    const all: string[] = []
    for await (const { name } of ada.tools()) all.push(name)
    return all.sort()
  }
  expect(await names()).toEqual(['go', 'stay'])
  await lost.close()
  await expect
    .poll(async () => (await ada.callTool('go').catch(error => ({ text: String(error) }))).text, { timeout: 10_000 })
    .toMatch(/"lost"/)
  await expect.poll(names).toEqual(['stay'])
  expect((await ada.callTool('stay')).text).toBe('here')
  expect(await ada.callTool('go')).toMatchObject({ isError: true, text: expect.stringContaining('lost') })
  expect(gateway.upstreams()).toMatchObject([
    { status: 'up' },
    { name: 'lost', status: expect.stringMatching(/down|connecting/) },
  ])
  const again = createServer({ name: 'lost', version: '1.0.0' })
  onTestFinished(() => again.close())
  again.tool('go', {}, () => 'back')
  await again.listen({ port })
  await expect.poll(names).toEqual(['go', 'stay'])
  expect((await ada.callTool('go')).text).toBe('back')
})

test('a caller that cancels while its question is out cancels the call at the server', async () => {
  const { server, seen } = asker(['2025-11-25'])
  const { url } = await server.listen()
  const { client, gateway } = await openGateway({ asker: url })
  const abort = new AbortController()
  const ada = await client('2025-11-25', {
    onElicit: () => {
      abort.abort()
      return new Promise(() => {})
    },
  })
  await expect(ada.callTool('order', { who: 'ada' }, { signal: abort.signal })).rejects.toThrow()
  expect(seen).toEqual(['ada'])
  await using direct = await connect(url)
  expect((await direct.callTool('wait', { who: 'x' }, { timeout: '50ms' }).catch(() => ({ text: 'late' }))).text).toBe('late')
  expect(gateway.upstreams()[0]?.status).toBe('up')
})
