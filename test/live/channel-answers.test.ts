/** What hosts do with channels beside publishing (MCP Live 0.4, 0.5): a server of ours judged by its frames, in memory. */
import { afterEach, describe, expect, it } from 'vitest'
import { type AnswerStream, createServer, type FeatureSet, type Server } from '../../src/server/index.ts'
import { type Frame, resultOf, speak, type Wire } from '../spec/wire.ts'

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

async function world(describeSet: (chat: FeatureSet) => void, enabled: readonly string[] = ['*'], version = '0.4') {
  const server = createServer({ name: 'chat', version: '1.0.0', log: 'silent' })
  servers.push(server)
  const chat = server.featureSet('chat', { description: 'Chat rooms' })
  const general = chat.channel('general', { type: 'room' })
  describeSet(chat)
  const wire = await speak(server, '2025-11-25', {
    capabilities: { experimental: { mcpl: { version } } },
    answers: { 'channels/register': () => ({ results: [] }), 'channels/changed': () => ({ results: [] }) },
  })
  if (version === '0.4') wire.tell('featureSets/update', { enabled, disabled: [] })
  return { server, chat, general, wire }
}

const at = { channelId: 'general', conversationId: 'c' }
const chunk = (wire: Wire, index: number, delta: string, inferenceId = 'inf-1') =>
  wire.tell('channels/outgoing/chunk', { ...at, inferenceId, index, delta })
const complete = (wire: Wire, text: string, inferenceId = 'inf-1') =>
  wire.tell('channels/outgoing/complete', { ...at, inferenceId, content: [{ type: 'text', text }] })
const publish = (wire: Wire, content: string, more: Frame = { inferenceId: 'inf-1' }) =>
  wire.ask('channels/publish', { ...at, content, ...more })

/** A chat that shows answers while they are written, and posts what it is told to. */
function shown(give: { readonly messageId?: string } | undefined) {
  const [streams, posted]: [Frame[], Frame[]] = [[], []]
  const set = (chat: FeatureSet): void => {
    chat.onStream(async (stream: AnswerStream) => {
      const pieces: string[] = []
      for await (const piece of stream) pieces.push(piece)
      const { channelId, inferenceId, conversationId } = stream
      streams.push({ channelId, inferenceId, conversationId, said: pieces.join(''), text: await stream.text })
      return give
    })
    chat.onPublish(message => {
      posted.push({ ...message })
      return { messageId: `p-${posted.length}` }
    })
  }
  return { streams, posted, set }
}

describe('an answer that a host streams', () => {
  it('comes to the author piece by piece, each once, with what was lost at the end', async () => {
    const { streams, set } = shown(undefined)
    const { wire } = await world(set)
    chunk(wire, 0, 'It ')
    chunk(wire, 0, 'It ')
    chunk(wire, 1, 'is ')
    complete(wire, 'It is noon')
    chunk(wire, 2, 'late')
    await expect.poll(() => streams).toHaveLength(1)
    expect(streams).toEqual([
      { channelId: 'general', inferenceId: 'inf-1', conversationId: 'c', said: 'It is noon', text: 'It is noon' },
    ])
  })

  it('is posted once: where the handler has posted it, the same text is not handed to onPublish', async () => {
    const { posted, set } = shown({ messageId: 's-1' })
    const { wire } = await world(set)
    chunk(wire, 0, 'It is noon')
    complete(wire, 'It is noon')
    expect(resultOf(await publish(wire, 'It is noon'))).toEqual({ delivered: true, messageId: 's-1' })
    expect(posted).toEqual([])
  })

  it('is known by its text where the host does not say which inference it publishes', async () => {
    const { posted, set } = shown({ messageId: 's-1' })
    const { wire } = await world(set)
    chunk(wire, 0, 'It is noon')
    complete(wire, 'It is noon')
    expect(resultOf(await publish(wire, 'It is noon', {}))).toMatchObject({ messageId: 's-1' })
    expect(resultOf(await publish(wire, 'It is noon', {}))).toMatchObject({ messageId: 'p-1' })
    expect(posted).toHaveLength(1)
  })

  it('that came out otherwise is published with what it replaces; one that was merely shown is published', async () => {
    const { posted, set } = shown({ messageId: 's-1' })
    const { wire } = await world(set)
    chunk(wire, 0, 'Let me look')
    complete(wire, 'Let me look')
    expect(resultOf(await publish(wire, 'It is noon'))).toEqual({ delivered: true, messageId: 'p-1' })
    expect(posted).toMatchObject([{ text: 'It is noon', replaces: 's-1', inferenceId: 'inf-1' }])
    const merely = shown(undefined)
    const other = await world(merely.set)
    chunk(other.wire, 0, 'It is noon')
    complete(other.wire, 'It is noon')
    expect(resultOf(await publish(other.wire, 'It is noon'))).toEqual({ delivered: true, messageId: 'p-1' })
    expect(merely.posted).toHaveLength(1)
    expect(merely.posted[0]).not.toHaveProperty('replaces')
  })

  it('AUDIT-001: delivers nothing by itself: what is never published is never handed to onPublish', async () => {
    const { streams, posted, set } = shown(undefined)
    const { wire } = await world(set)
    chunk(wire, 0, 'It is noon')
    complete(wire, 'It is noon')
    await expect.poll(() => streams).toHaveLength(1)
    expect(posted).toEqual([])
  })

  it('of which the oldest is given up where a host has too many at once', async () => {
    const { streams, set } = shown(undefined)
    const { wire } = await world(set)
    for (let n = 0; n < 9; n++) chunk(wire, 0, `answer ${n}`, `inf-${n}`)
    await expect.poll(() => streams).toMatchObject([{ inferenceId: 'inf-0', text: 'answer 0' }])
  })

  it('ends with its channel', async () => {
    const { streams, set } = shown(undefined)
    const { wire, general } = await world(set)
    chunk(wire, 0, 'It ')
    await wire.quiet()
    general.remove()
    await expect.poll(() => streams).toMatchObject([{ said: 'It ' }])
  })
})

it('an answer that is published again, because nobody heard that it was, is posted once; what has no inference may be meant twice', async () => {
  const { posted, set } = shown(undefined)
  const { wire } = await world(set)
  const answers = [await publish(wire, 'Noon'), await publish(wire, 'Noon')].map(resultOf)
  expect([answers, posted.length]).toEqual([[1, 1].map(n => ({ delivered: true, messageId: `p-${n}` })), 1])
  await publish(wire, 'Noon', {})
  await publish(wire, 'Noon', {})
  expect(posted).toHaveLength(3)
})

describe('what a host tells of an answer', () => {
  it('that it works on one, and that a message was taken in, comes to the author, who may refuse', async () => {
    const told: unknown[] = []
    const { wire } = await world(chat => {
      chat.onTyping(({ channelId }) => {
        told.push(channelId)
        return undefined
      })
      chat.onAcknowledge(message => {
        told.push(message)
        return message.messageId === 'm-1' ? { representation: '👀' } : { refused: 'It is gone' }
      })
    })
    wire.tell('channels/typing', { channelId: 'general' })
    await wire.quiet()
    const seen = { channelId: 'general', intent: 'seen' }
    const answers = [
      await wire.ask('channels/acknowledge', { ...seen, messageId: 'm-1', value: '👀' }),
      await wire.ask('channels/acknowledge', { ...seen, messageId: 'm-2' }),
    ]
    expect(answers.map(resultOf)).toEqual([
      { acknowledged: true, representation: '👀' },
      { acknowledged: false, reason: 'It is gone' },
    ])
    expect(told).toEqual(['general', { ...seen, messageId: 'm-1', value: '👀' }, { ...seen, messageId: 'm-2' }])
  })

  it('is not known to a set without such a handler, and says so only where it is asked', async () => {
    const { wire } = await world(() => {})
    wire.tell('channels/typing', { channelId: 'general' })
    chunk(wire, 0, 'x')
    complete(wire, 'x')
    const asked = { channelId: 'general', messageId: 'm', intent: 'seen' }
    expect(await wire.ask('channels/acknowledge', asked)).toHaveProperty('error.code', -32601)
  })

  it('does not come to a set that the host has not enabled', async () => {
    const told: unknown[] = []
    const note = (what: unknown) => {
      told.push(what)
      return undefined
    }
    const { wire } = await world(chat => chat.onTyping(note).onAcknowledge(note).onStream(note).onOpen(note).onClose(note), [])
    wire.tell('channels/typing', { channelId: 'general' })
    chunk(wire, 0, 'x')
    for (const [method, more] of [
      ['acknowledge', { messageId: 'm', intent: 'seen' }],
      ['open', {}],
      ['close', {}],
    ] as const)
      expect(await wire.ask(`channels/${method}`, { channelId: 'general', ...more })).toHaveProperty('error.code', -32001)
    await wire.quiet()
    expect(told).toEqual([])
  })

  it('is declared by the names of 0.5, and a host that grants less of it does not switch the set off', async () => {
    const { wire } = await world(
      chat => {
        chat.onPublish(() => undefined)
        chat.onStream(() => undefined).onTyping(() => undefined)
        chat.onAcknowledge(() => undefined).onOpen(() => undefined)
      },
      [],
      '0.5',
    )
    const names = ['register', 'incoming', 'publish', 'lifecycle', 'streaming', 'typing', 'acknowledge']
    expect(resultOf(wire.hello as Frame)).toMatchObject({
      capabilities: {
        experimental: {
          mcpl: {
            channels: Object.fromEntries(names.map(name => [name, true])),
            featureSets: { chat: { uses: names.map(name => `channels.${name}`) } },
          },
        },
      },
    })
    const effectiveCapabilities = ['register', 'incoming', 'publish'].map(name => `channels.${name}`)
    const receipt = await wire.ask('featureSets/update', { effectiveCapabilities, enabled: ['chat'], disabled: [] })
    expect(resultOf(receipt)).toMatchObject({ accepted: true, unavailableFeatures: [] })
    expect(resultOf(await wire.ask('channels/list'))).toMatchObject({ channels: [{ id: 'general' }] })
  })
})

describe('opening and closing channels', () => {
  it('reaches the author, who may refuse with a reason', async () => {
    const asked: unknown[] = []
    const { wire } = await world(chat => {
      chat.onOpen(wanted => {
        asked.push(['open', wanted])
        return asked.length > 2 ? { refused: 'Members only' } : undefined
      })
      chat.onClose(wanted => {
        asked.push(['close', wanted])
        return asked.length > 2 ? { refused: 'It is needed' } : undefined
      })
    })
    const channel = { channelId: 'general' }
    const ask = (method: string) => wire.ask(`channels/${method}`, channel)
    expect(resultOf(await ask('open'))).toEqual({ channel: { id: 'general', type: 'room' } })
    expect(resultOf(await ask('close'))).toEqual({ closed: true })
    expect(await ask('open')).toMatchObject({
      error: { code: -32024, message: expect.stringContaining('Members only'), data: { ...channel, reason: 'Members only' } },
    })
    expect(resultOf(await ask('close'))).toEqual({ closed: false, reason: 'It is needed' })
    expect(asked).toEqual(['open', 'close', 'open', 'close'].map(what => [what, channel]))
  })

  it('opens one by its kind and address where the author makes one, and says so where nobody does', async () => {
    const { wire } = await world(chat => {
      chat.onOpen(({ type, address }) => {
        if (type !== 'room' || typeof address !== 'string') return { refused: 'There are rooms only' }
        if (address === 'dev') chat.channel('room:dev')
        return { channelId: `room:${address}` }
      })
    })
    const open = (params: Frame) => wire.ask('channels/open', params)
    expect(resultOf(await open({ type: 'room', address: 'dev' }))).toEqual({ channel: { id: 'room:dev' } })
    expect(await open({ type: 'phone' })).toHaveProperty('error.data.reason', 'There are rooms only')
    expect(await open({ type: 'room', address: 'none' })).toHaveProperty('error.code', -32024)
    const none = await world(() => {})
    expect(await none.wire.ask('channels/open', { type: 'room' })).toHaveProperty('error.code', -32602)
  })
})
