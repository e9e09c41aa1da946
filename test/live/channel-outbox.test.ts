/** Messages of channels that could not be delivered are kept like pushed events, and sent again under the same id (T3). */
import { afterEach, describe, expect, it } from 'vitest'
import { createServer, type Server } from '../../src/server/index.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { Store } from '../../src/stores/store.ts'
import { type Frame, speak, type Wire } from '../spec/wire.ts'

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

function chatting(store: Store = memoryStore(), outbox = 100) {
  const server = createServer({ name: 'chat', version: '1.0.0', log: 'silent', store, live: { outbox } })
  servers.push(server)
  const chat = server.featureSet('chat', { description: 'Chat rooms' })
  return { server, chat, general: chat.channel('general') }
}

type Answers = Readonly<Record<string, (params: Frame) => unknown>>
const taking: Answers = {
  'channels/register': ({ channels }) => ({ results: (channels as Frame[]).map(({ id }) => ({ id, accepted: true })) }),
  'channels/changed': () => ({ results: [] }),
  'channels/incoming': ({ messages }) => ({
    results: (messages as Frame[]).map(({ messageId }) => ({ messageId, accepted: true })),
  }),
}

async function host(server: Server, answers: Answers = taking): Promise<Wire> {
  const capabilities = { experimental: { mcpl: { version: '0.4' } } }
  const wire = await speak(server, '2025-11-25', { capabilities, answers })
  wire.tell('featureSets/update', { enabled: ['*'], disabled: [] })
  return wire
}

const messages = (wire: Wire): readonly Frame[] =>
  wire.heard
    .filter(({ method }) => method === 'channels/incoming')
    .flatMap(({ params }) => (params as { messages: Frame[] }).messages)
const ids = (wire: Wire): readonly unknown[] => messages(wire).map(({ messageId }) => messageId)

describe('a message of a channel', () => {
  it('that was written while no host was there goes out when one has come and knows the channel, in order', async () => {
    const { server, general } = chatting()
    const sent = []
    for (const messageId of ['m-1', 'm-2', 'm-3']) sent.push(await general.incoming({ content: messageId, messageId }))
    const wire = await host(server)
    expect(await Promise.all(sent.map(({ answered }) => answered))).toEqual(
      sent.map(({ messageId }) => ({ messageId, accepted: true })),
    )
    expect(ids(wire)).toEqual(['m-1', 'm-2', 'm-3'])
    const channels = wire.heard.map(({ method }) => method).filter(method => String(method).startsWith('channels/'))
    expect(channels[0]).toBe('channels/register')
  })

  it('survives the end of the server, and is sent by the next one once it offers the channel again', async () => {
    const store = memoryStore()
    const first = chatting(store)
    const { timestamp } = await first.general.incoming({
      content: 'Hi',
      messageId: 'm-1',
      author: { name: 'Ada' },
      threadId: 't',
    })
    await first.server.close()
    const { server } = chatting(store)
    const wire = await host(server)
    await expect.poll(() => messages(wire)).toHaveLength(1)
    expect(messages(wire)).toEqual([
      {
        channelId: 'general',
        messageId: 'm-1',
        threadId: 't',
        author: { name: 'Ada' },
        timestamp,
        content: [{ type: 'text', text: 'Hi' }],
      },
    ])
    await expect.poll(async () => (await store.scan('live/outbox/event/')).length).toBe(0)
  })

  it('whose host went away without an answer is sent to the next one, under the same id and time', async () => {
    const { server, general } = chatting()
    const { 'channels/incoming': _, ...silent } = taking
    const deaf = await host(server, silent)
    const { answered, timestamp } = await general.incoming({ content: 'Hi', messageId: 'm-1' })
    await expect.poll(() => ids(deaf)).toEqual(['m-1'])
    await deaf.close()
    const wire = await host(server)
    expect(await answered).toEqual({ messageId: 'm-1', accepted: true })
    expect(messages(wire)).toMatchObject([{ messageId: 'm-1', timestamp }])
  })

  it('is sent again when its host says when to, and not after a no', async () => {
    const { server, general } = chatting()
    let refusals = 2
    const wire = await host(server, {
      ...taking,
      'channels/incoming': ({ messages }) => ({
        results: (messages as Frame[]).map(({ messageId }) => {
          if (messageId === 'm-2') return { messageId, accepted: false, reason: 'spam' }
          return refusals-- > 0 ? { messageId, accepted: false, reason: 'rate', retryAfterMs: 1 } : { messageId, accepted: true }
        }),
      }),
    })
    const [rated, refused] = [
      await general.incoming({ content: 'a', messageId: 'm-1' }),
      await general.incoming({ content: 'b', messageId: 'm-2' }),
    ]
    expect(await rated.answered).toEqual({ messageId: 'm-1', accepted: true })
    expect(await refused.answered).toEqual({ messageId: 'm-2', accepted: false, reason: 'spam' })
    expect(ids(wire)).toEqual(['m-1', 'm-1', 'm-1', 'm-2'])
  })

  it('counts in the bounds of the outbox, once under its id, and never with another content', async () => {
    const { chat, general } = chatting(memoryStore(), 2)
    const dev = chat.channel('dev')
    await general.incoming({ content: 'a', messageId: 'm-1' })
    await general.incoming({ content: 'a', messageId: 'm-1' })
    await expect(general.incoming({ content: 'b', messageId: 'm-1' })).rejects.toMatchObject({ code: 'EVENT_CONFLICT' })
    // An id is one of its channel.
    await dev.incoming({ content: 'b', messageId: 'm-1' })
    await expect(dev.incoming({ content: 'c' })).rejects.toMatchObject({ code: 'QUOTA_EXHAUSTED' })
    await expect(dev.incoming({ content: 'c', messageId: '' })).rejects.toThrow('messageId')
  })

  it('of a channel that was removed waits until there is one again', async () => {
    const { server, chat, general } = chatting()
    await general.incoming({ content: 'Hi', messageId: 'm-1' })
    general.remove()
    await expect(general.incoming({ content: 'x' })).rejects.toThrow('removed')
    const wire = await host(server)
    await wire.quiet()
    expect(ids(wire)).toEqual([])
    chat.channel('general')
    await expect.poll(() => ids(wire)).toEqual(['m-1'])
  })

  it('for one principal goes to hosts of nobody else', async () => {
    const { server, general } = chatting()
    const wire = await host(server)
    await general.incoming({ content: 'Secret', messageId: 'm-1', to: 'somebody' })
    await general.incoming({ content: 'Hi', messageId: 'm-2' })
    await expect.poll(() => ids(wire)).toEqual(['m-2'])
    expect(JSON.stringify(wire.heard)).not.toContain('Secret')
  })
})
