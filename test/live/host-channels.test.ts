/**
 * What a host tells channels beside what it publishes (MCP Live 0.4, 0.5): answers while they are written, that it works on one, and that
 * a message was taken in. Judged by raw servers, then with a server of ours.
 */
import { describe, expect, onTestFinished, test } from 'vitest'
import type { LiveConnection } from '../../src/features/live/client-api.ts'
import { createHost, type HostOptions, type Model, scripted } from '../../src/host/index.ts'
import { createServer, type FeatureSet } from '../../src/server/index.ts'
import { host } from './raw/host.ts'
import { carriers, type RawServer } from './raw/raw-server.ts'
import { type Frame, Refusal } from './raw/script.ts'

const all = ['register', 'publish', 'incoming', 'streaming', 'typing', 'acknowledge'].map(name => `channels.${name}`)
const declaring = (uses: readonly string[], channels: unknown = true) => ({
  version: '0.4',
  channels,
  featureSets: { chat: { description: 'Chat', uses } },
})
const answers = {
  'channels/outgoing/chunk': () => ({}),
  'channels/outgoing/complete': () => ({}),
  'channels/typing': () => ({}),
  'channels/acknowledge': () => ({ acknowledged: true, representation: '👀' }),
}
const register = (raw: RawServer) => raw.ask('channels/register', { channels: [{ id: 'general' }] })
const about = { inferenceId: 'inf-1', conversationId: 'c-1' }
const sent = (raw: RawServer): readonly string[] =>
  raw.script.heard.map(({ method }) => String(method)).filter(name => /^channels\//.test(name))

async function tellAll(live: LiveConnection): Promise<readonly unknown[]> {
  const stream = live.stream('general', about)
  stream?.push('It ')
  await stream?.end('It is noon')
  return [stream !== undefined, live.typing('general'), await live.acknowledge('general', 'm-1')]
}

describe.each(carriers)('a host on one connection, %s', carrier => {
  test('tells a server whose enabled set names it: chunks in their order, the end with the whole, typing, and a message taken in', async () => {
    const { raw, live } = await host(carrier, { mcpl: declaring(all), answers })
    await register(raw)
    const stream = live.stream('general', about)
    for (const delta of ['It ', 'is ', 'noon']) stream?.push(delta)
    await stream?.end('It is noon')
    const named = { ...about, channelId: 'general' }
    const end = await raw.script.hears('channels/outgoing/complete')
    expect(end['params']).toMatchObject({ ...named, content: [{ type: 'text', text: 'It is noon' }] })
    const chunks = raw.script.of('channels/outgoing/chunk').map(({ params }) => params as Frame)
    expect(chunks.map(({ delta }) => delta).join('')).toBe('It is noon')
    expect(chunks.map(({ index }) => index)).toEqual([...chunks.keys()])
    expect(chunks[0]).toMatchObject(named)
    expect(live.typing('general')).toBe(true)
    await raw.script.hears('channels/typing')
    expect(await live.acknowledge('general', 'm-1')).toEqual({ acknowledged: true, representation: '👀' })
    expect(raw.script.of('channels/acknowledge')[0]?.['params']).toMatchObject({
      channelId: 'general',
      messageId: 'm-1',
      intent: 'seen',
    })
  })

  test('tells nothing to one that announces channels as a whole and names none of it, nor of a channel that nobody registered', async () => {
    const { raw, live } = await host(carrier, { mcpl: declaring(['channels']), answers })
    await register(raw)
    expect(await tellAll(live)).toEqual([false, false, undefined])
    const other = await host(carrier, { mcpl: declaring(all), answers })
    expect(await tellAll(other.live)).toEqual([false, false, undefined])
    expect([...sent(raw), ...sent(other.raw)]).toEqual([])
  })

  test('tells nothing that a server names in a set and does not announce', async () => {
    const announced = { register: true, publish: true, incoming: true }
    const { raw, live } = await host(carrier, { mcpl: declaring(all, announced), answers })
    await register(raw)
    expect(await tellAll(live)).toEqual([false, false, undefined])
    expect(sent(raw)).toEqual([])
  })

  test('a server that does not know what it names is no error', async () => {
    const { raw, live } = await host(carrier, { mcpl: declaring(all) })
    await register(raw)
    expect(await live.acknowledge('general', 'm-1')).toBe(undefined)
    expect(await live.acknowledge('general', 'm-2')).toBe(undefined)
    expect(sent(raw)).toEqual(['channels/acknowledge'])
    expect(await tellAll(live)).toEqual([true, true, undefined])
  })

  test('what is written while consent is withdrawn does not reach the server', async () => {
    let enabled = ['*']
    const select = () => ({ enabled, disabled: [], canEnable: () => true })
    const { raw, live } = await host(carrier, { mcpl: declaring(all), answers, handlers: { select } })
    await register(raw)
    const stream = live.stream('general', about)
    stream?.push('It ')
    await raw.script.hears('channels/outgoing/chunk')
    enabled = []
    await live.update()
    stream?.push('is secret')
    await stream?.end('It is secret')
    expect(live.typing('general')).toBe(false)
    expect(JSON.stringify(raw.script.heard)).not.toContain('secret')
    expect(raw.script.of('channels/outgoing/complete')).toEqual([])
  })

  test('a channel that a server does not close, or open, is an error with its reason', async () => {
    const { raw, live } = await host(carrier, {
      mcpl: declaring(all),
      answers: {
        'channels/close': () => ({ closed: false, reason: 'It is needed' }),
        'channels/open': () => {
          throw new Refusal(-32024, 'Channel open failed: Members only')
        },
      },
    })
    await register(raw)
    await expect(live.closeChannel('general')).rejects.toThrow('It is needed')
    await expect(live.openChannel({ channelId: 'general' })).rejects.toThrow('Members only')
  })
})

/** Says it in these pieces; those with a call before the answer. */
function saying(...answers: readonly (readonly string[])[]): Model {
  let turn = 0
  return {
    info: { id: 'saying', vendor: 'test', contextWindow: 100_000, capabilities: [] },
    async *generate() {
      for (const delta of answers[Math.min(turn, answers.length - 1)] ?? []) yield { type: 'text', delta }
      turn++
      yield { type: 'end', finishReason: 'end_turn', usage: { inputTokens: 1, outputTokens: 1 } }
    },
  }
}

/** Our host and our server, over HTTP: what the channel was told, in order. */
async function together(options: Partial<HostOptions>, revision: '2025-11-25' | '2026-07-28', more: (chat: FeatureSet) => void) {
  const server = createServer({ name: 'chat', version: '1.0.0', log: 'silent' })
  const told: string[] = []
  const chat = server.featureSet('chat', { description: 'Chat rooms' })
  const general = chat.channel('general')
  chat.onPublish(({ text, inReplyTo }) => {
    told.push(`post ${text} (${inReplyTo})`)
    return { messageId: 'p' }
  })
  more(chat)
  const { url } = await server.listen()
  const host = await createHost({
    servers: { chat: { target: url, connect: { revisions: [revision] }, live: { enable: ['*'] } } },
    policy: { rules: [{ name: 'pushes', when: { kind: 'push' }, do: 'allow' }] },
    ...options,
  })
  onTestFinished(async () => {
    await host.close()
    await server.close()
  })
  await host.open()
  await expect.poll(() => host.server('chat')?.live?.channels.size).toBe(1)
  const noted = async (kind: string) => (await host.audit({ kind })).notes
  return { host, chat, general, told, noted }
}

describe.each(['2025-11-25', '2026-07-28'] as const)('a host and a server at %s', revision => {
  test('a message is acknowledged, worked on, and its answer streamed and posted once', async () => {
    const told: string[] = []
    const note = (what: string) => {
      told.push(what)
      return undefined
    }
    const {
      general,
      told: posted,
      noted,
    } = await together({ model: saying(['It ', 'is ', 'noon']) }, revision, chat => {
      chat.onTyping(({ channelId }) => note(`typing in ${channelId}`))
      chat.onAcknowledge(({ messageId, intent }) => note(`${intent} ${messageId}`))
      chat.onStream(async stream => {
        let said = ''
        for await (const piece of stream) said += piece
        note(`streamed ${said}`)
        return { messageId: 's' }
      })
    })
    await general.incoming({ content: 'What time is it?', messageId: 'm-1' })
    await expect.poll(() => told.toSorted()).toEqual(['seen m-1', 'streamed It is noon', 'typing in general'])
    const about = { server: 'chat', featureSet: 'chat', outcome: 'success', detail: 'general' }
    for (const kind of ['publish', 'stream', 'typing', 'acknowledge']) await expect.poll(() => noted(kind)).toMatchObject([about])
    // The handler has posted it: nothing is left to post.
    expect(posted).toEqual([])
  })

  test('without a stream handler the answer is published, and nothing else of it is sent', async () => {
    const { general, told, noted } = await together({ model: saying(['It is ', 'noon']) }, revision, () => {})
    await general.incoming({ content: 'What time is it?', messageId: 'm-1' })
    await expect.poll(() => told).toEqual(['post It is noon (m-1)'])
    for (const kind of ['stream', 'typing', 'acknowledge']) expect(await noted(kind)).toEqual([])
  })

  test('what rules forbid is not told, and noted: the stream by its own name, or with publishing', async () => {
    for (const tool of ['channels/outgoing', 'channels/publish', 'channels/typing', 'channels/acknowledge']) {
      const told: string[] = []
      const rules = [
        { name: 'pushes', when: { kind: 'push' as const }, do: 'allow' as const },
        { name: 'mute', when: { kind: 'tool' as const, tool }, do: 'deny' as const },
      ]
      const { general, noted } = await together({ model: saying(['Noon']), policy: { rules } }, revision, chat => {
        chat.onStream(() => void told.push('channels/outgoing'))
        chat.onTyping(() => void told.push('channels/typing'))
        chat.onAcknowledge(() => void told.push('channels/acknowledge'))
      })
      await general.incoming({ content: 'What time is it?' })
      const kind = { 'channels/typing': 'typing', 'channels/acknowledge': 'acknowledge' }[tool] ?? 'stream'
      await expect.poll(() => noted(kind)).toMatchObject([{ outcome: 'refused', why: { rule: 'mute' } }])
      await expect.poll(() => noted('publish')).toHaveLength(1)
      expect(told).not.toContain(tool === 'channels/publish' ? 'channels/outgoing' : tool)
    }
  })

  test('what the model has published there itself ends the stream: its answer is neither streamed nor posted', async () => {
    const call = { name: 'publish_to_channel', arguments: { server: 'chat', channel: 'general', text: 'By the tool' } }
    const rules = ['push', 'tool'].map(kind => ({ name: kind, when: { kind: kind as 'push' }, do: 'allow' as const }))
    const streamed: string[] = []
    const model = scripted([{ calls: [call] }, 'By the answer'])
    const { host, general, told } = await together({ model, policy: { rules } }, revision, chat => {
      chat.onStream(async stream => void streamed.push(await stream.text))
    })
    await general.incoming({ content: 'Say it' })
    await expect.poll(async () => (await host.conversation('inbox/chat/general').turns()).at(-1)?.answer).toBe('By the answer')
    expect([told, streamed]).toEqual([['post By the tool (undefined)'], []])
  })

  test('a turn that fails ends its stream with what was said; the next attempt is not streamed, and posted', async () => {
    let attempts = 0
    const failing: Model = {
      info: { id: 'failing', vendor: 'test', contextWindow: 100_000, capabilities: [] },
      async *generate() {
        yield { type: 'text', delta: 'It is ' }
        if (++attempts === 1) throw new Error('No more words')
        yield { type: 'text', delta: 'noon' }
        yield { type: 'end', finishReason: 'end_turn', usage: { inputTokens: 1, outputTokens: 1 } }
      },
    }
    const streamed: string[] = []
    const { general, told } = await together({ model: failing, inbox: { backoff: { first: 1, longest: 1 } } }, revision, chat => {
      chat.onStream(async stream => void streamed.push(await stream.text))
    })
    await general.incoming({ content: 'What time is it?', messageId: 'm-1' })
    await expect.poll(() => told).toEqual(['post It is noon (m-1)'])
    expect(streamed).toEqual(['It is '])
  })

  test('a blocking hook may change the answer: nothing of it is streamed before', async () => {
    const streamed: string[] = []
    const { general, told } = await together({ model: saying(['The key ', 'is 42']) }, revision, chat => {
      chat.onStream(async stream => void streamed.push(await stream.text))
      chat.afterInference(() => 'It is a secret', { blocking: true })
    })
    await general.incoming({ content: 'What is the key?', messageId: 'm-1' })
    await expect.poll(() => told).toEqual(['post It is a secret (m-1)'])
    expect(streamed).toEqual([])
  })
})
