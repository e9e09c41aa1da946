/** Channels of a live server (MCP Live 0.4), judged by its frames alone, and with a host of ours. */
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { createHost, type HostOptions, scripted } from '../../src/host/index.ts'
import { type Channel, type ChannelMessage, createServer, type Server } from '../../src/server/index.ts'
import { type Frame, resultOf, speak, type Wire } from '../spec/wire.ts'

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

/** A chat server, with what was posted in its channels. */
function chatting() {
  const server = createServer({ name: 'chat', version: '1.0.0', log: 'silent' })
  servers.push(server)
  const posted: Frame[] = []
  const chat = server.featureSet('chat', { description: 'Chat rooms' })
  const general = chat.channel('room:general', { label: '#general', type: 'room' })
  chat.onPublish(message => {
    posted.push({ ...message })
    if (message.text === 'no') throw new Error('not here')
    return { messageId: `p-${posted.length}` }
  })
  return { server, chat, general, posted }
}

/** A host in memory that answers registrations and messages. */
async function host(server: Server, { version = '0.4', enabled = ['*'] as readonly string[] } = {}): Promise<Wire> {
  const wire = await speak(server, '2025-11-25', {
    capabilities: { experimental: { mcpl: { version } } },
    answers: {
      'channels/register': ({ channels }) => ({ results: (channels as Frame[]).map(({ id }) => ({ id, accepted: true })) }),
      'channels/changed': () => ({ results: [] }),
      'channels/incoming': ({ messages }) => ({
        results: (messages as Frame[]).map(({ messageId, content }) => {
          const no = JSON.stringify(content).includes('spam')
          return no ? { messageId, accepted: false, reason: 'spam' } : { messageId, accepted: true }
        }),
      }),
    },
  })
  wire.tell('featureSets/update', { enabled, disabled: [] })
  return wire
}

/** What came of a message. */
const said = async (channel: Channel, message: ChannelMessage) => (await channel.incoming(message)).answered

const named = (method: string) => (frame: Frame) => frame['method'] === method

describe('a server with channels', () => {
  it('declares what its set uses, and registers its channels with hosts that have the set enabled', async () => {
    const { server, chat } = chatting()
    const wire = await host(server)
    const { capabilities } = resultOf(wire.hello as Frame) as { capabilities: Frame }
    expect(capabilities).toMatchObject({
      experimental: {
        mcpl: { channels: true, featureSets: { chat: { uses: ['channels.register', 'channels.incoming', 'channels.publish'] } } },
      },
    })
    const registered = await wire.next(named('channels/register'))
    expect(registered['params']).toEqual({ channels: [{ id: 'room:general', type: 'room', label: '#general' }] })
    const dev = chat.channel('room:dev')
    expect((await wire.next(named('channels/changed')))['params']).toEqual({ added: [{ id: 'room:dev' }], removed: [] })
    dev.remove()
    expect((await wire.next(named('channels/changed')))['params']).toEqual({ added: [], removed: ['room:dev'] })
    expect(resultOf(await wire.ask('channels/list'))).toEqual({
      channels: [{ id: 'room:general', type: 'room', label: '#general' }],
    })
  })

  it('says nothing of them to a host that has not enabled the set, and takes nothing from it', async () => {
    const { server, general, posted } = chatting()
    const wire = await host(server, { enabled: [] })
    await wire.quiet()
    expect(wire.heard.filter(({ method }) => String(method).startsWith('channels/'))).toEqual([])
    expect(resultOf(await wire.ask('channels/list'))).toEqual({ channels: [] })
    const refused = await wire.ask('channels/publish', { channelId: 'room:general', content: 'x' })
    expect([refused, posted]).toMatchObject([{ error: { code: -32001, data: { featureSet: 'chat' } } }, []])
    await general.incoming({ content: 'x', messageId: 'm-1' })
    await wire.quiet()
    expect(wire.heard.filter(named('channels/incoming'))).toEqual([])
    wire.tell('featureSets/update', { enabled: ['chat'], disabled: [] })
    expect(await wire.next(named('channels/incoming'))).toMatchObject({ params: { messages: [{ messageId: 'm-1' }] } })
  })

  it('hands messages to the host, and gives what it says of each', async () => {
    const { server, general } = chatting()
    const wire = await host(server)
    await wire.next(named('channels/register'))
    const message = { content: 'Hi', messageId: 'm-1', threadId: 't', author: { name: 'Ada' }, tags: ['chat:mention'] }
    expect(await said(general, message)).toEqual({ messageId: 'm-1', accepted: true })
    expect((await wire.next(named('channels/incoming')))['params']).toEqual({
      messages: [
        { ...message, channelId: 'room:general', timestamp: expect.any(String), content: [{ type: 'text', text: 'Hi' }] },
      ],
    })
    expect(await said(general, { content: 'spam', messageId: 'm-2' })).toEqual({
      messageId: 'm-2',
      accepted: false,
      reason: 'spam',
    })
  })

  it('posts what is published, by request or by notification, and refuses what it has no channel for', async () => {
    const { server, posted } = chatting()
    const wire = await host(server)
    await wire.next(named('channels/register'))
    const said = { channelId: 'room:general', content: 'Hello', conversationId: 'c', inReplyTo: 'm-1' }
    expect(resultOf(await wire.ask('channels/publish', said))).toEqual({ delivered: true, messageId: 'p-1' })
    wire.tell('channels/publish', { ...said, content: [{ type: 'text', text: 'Again' }] })
    await wire.quiet()
    expect(posted).toMatchObject([
      { channelId: 'room:general', text: 'Hello', conversationId: 'c', inReplyTo: 'm-1' },
      { text: 'Again' },
    ])
    expect(await wire.ask('channels/publish', { ...said, channelId: 'room:none' })).toMatchObject({
      error: { code: -32602, data: { channelId: 'room:none' } },
    })
    expect(await wire.ask('channels/publish', { ...said, content: 'no' })).toHaveProperty('error')
    expect(resultOf(await wire.ask('channels/open', { channelId: 'room:general' }))).toMatchObject({
      channel: { id: 'room:general' },
    })
    expect(resultOf(await wire.ask('channels/close', { channelId: 'room:general' }))).toEqual({ closed: true })
  })
})

/** Our host and our server, over HTTP. */
async function together(options: Partial<HostOptions>, revision: '2025-11-25' | '2026-07-28') {
  const made = chatting()
  const { url } = await made.server.listen()
  const host = await createHost({
    servers: { chat: { target: url, connect: { revisions: [revision] }, live: { enable: ['*'] } } },
    policy: { rules: [{ name: 'pushes', when: { kind: 'push' }, do: 'allow' }] },
    ...options,
  })
  onTestFinished(() => host.close())
  await host.open()
  await expect.poll(() => host.server('chat')?.live?.channels.size).toBe(1)
  return { ...made, host }
}

describe.each(['2025-11-25', '2026-07-28'] as const)('a host and a server at %s', revision => {
  it('the answer of the model goes to the channel that the message came from, once, with what it answers', async () => {
    const model = scripted('It is noon', { again: true })
    const { host, general, posted } = await together({ model }, revision)
    expect(await said(general, { content: 'What time is it?', messageId: 'm-1', threadId: 't-1' })).toMatchObject({
      accepted: true,
    })
    await expect.poll(() => posted).toHaveLength(1)
    expect(posted[0]).toMatchObject({ channelId: 'room:general', text: 'It is noon', inReplyTo: 'm-1', threadId: 't-1' })
    await said(general, { content: 'What time is it?', messageId: 'm-1' })
    expect((await host.conversations()).map(({ id }) => id)).toEqual(['inbox/chat/room:general'])
    const notes = (await host.audit({ kind: 'publish' })).notes
    expect(notes).toMatchObject([{ server: 'chat', featureSet: 'chat', outcome: 'success', detail: 'room:general' }])
    expect(posted).toHaveLength(1)
  })

  it('ambient messages do not wake the model; it sees them with the next one that is meant for it', async () => {
    const model = scripted('Yes', { again: true })
    const { host, general, posted } = await together({ model }, revision)
    for (const n of [1, 2]) {
      const message = { content: `Chatter ${n}`, messageId: `a-${n}`, tags: ['chat:ambient'] }
      expect(await said(general, message)).toEqual({ messageId: `a-${n}`, accepted: true })
    }
    await general.incoming({ content: 'Bot, are you there?', messageId: 'm', tags: ['chat:mention', 'chat:ambient'] })
    await expect.poll(() => posted).toHaveLength(1)
    expect(model.requests).toHaveLength(1)
    const prompt = JSON.stringify(model.requests[0]?.messages)
    expect(['Chatter 1', 'Chatter 2', 'are you there'].map(words => prompt.includes(words))).toEqual([true, true, true])
    const held = (await host.audit({ kind: 'push', outcome: 'held' })).notes
    expect(held.map(({ why }) => why?.code)).toEqual(['CHANNEL_AMBIENT', 'CHANNEL_AMBIENT'])
  })

  it('where ambient messages are to wake it, each becomes a turn', async () => {
    const { general, posted } = await together({ model: scripted('Yes', { again: true }), ambient: 'wake' }, revision)
    await general.incoming({ content: 'Chatter', tags: ['chat:ambient'] })
    await expect.poll(() => posted).toHaveLength(1)
  })

  it('what the model publishes by the tool takes the place of its answer', async () => {
    const call = { name: 'publish_to_channel', arguments: { server: 'chat', channel: 'room:general', text: 'By the tool' } }
    const model = scripted([{ calls: [call] }, 'By the answer'])
    const rules = ['push', 'tool'].map(kind => ({ name: kind, when: { kind: kind as 'push' }, do: 'allow' as const }))
    const { host, general, posted } = await together({ model, policy: { rules } }, revision)
    await general.incoming({ content: 'Say it' })
    await expect
      .poll(async () => (await host.conversation('inbox/chat/room:general').turns()).at(-1)?.answer)
      .toBe('By the answer')
    expect(posted.map(({ text }) => text)).toEqual(['By the tool'])
  })

  it('nothing is posted where the model has no answer, or a rule forbids it', async () => {
    const silent = await together({ model: scripted('', { again: true }) }, revision)
    await silent.general.incoming({ content: 'Anybody?' })
    await expect.poll(async () => (await silent.host.audit({ kind: 'turn' })).notes).toHaveLength(1)
    const rules = [
      { name: 'pushes', when: { kind: 'push' as const }, do: 'allow' as const },
      { name: 'mute', when: { kind: 'tool' as const, tool: 'channels/publish' }, do: 'deny' as const },
    ]
    const muted = await together({ model: scripted('Loud', { again: true }), policy: { rules } }, revision)
    await muted.general.incoming({ content: 'Anybody?' })
    await expect
      .poll(async () => (await muted.host.audit({ kind: 'publish' })).notes)
      .toMatchObject([{ outcome: 'refused', why: { rule: 'mute' } }])
    expect([silent.posted, muted.posted]).toEqual([[], []])
  })
})
