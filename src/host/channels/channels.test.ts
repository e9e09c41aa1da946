import { expect, test } from 'vitest'
import type { LiveConnection } from '../../features/live/client-api.ts'
import type { PushEvent } from '../../features/live/push-events/messages.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import type { Note } from '../../policy/audit/host-audit.ts'
import { memoryStore } from '../../stores/memory.ts'
import { fakeClock } from '../../testing/clock.ts'
import type { TurnRecord } from '../loop/conversation-log.ts'
import type { HostServer } from '../servers/server.ts'
import { AmbientMessages, ChannelAnswers } from './answers.ts'

const said = (n: number, channelId = 'room', tags: readonly string[] = ['chat:ambient']): PushEvent => ({
  featureSet: 'chat',
  eventId: `e-${channelId}-${n}`,
  timestamp: '2026-01-01T00:00:00Z',
  channel: { channelId, messageId: `m-${n}` },
  content: [{ type: 'text', text: `words ${n}` }],
  tags,
})
const turn = (n: number) => ({ inferenceId: `inf-${n}`, calls: [], outcomes: new Map() }) as unknown as TurnRecord

function world() {
  const clock = fakeClock()
  const store = memoryStore()
  const notes: Note[] = []
  const posted: unknown[] = []
  let publish: LiveConnection['publish'] | undefined
  const answers = new ChannelAnswers({
    store,
    clock,
    serverOf: () => (publish === undefined ? undefined : ({ live: { publish } } as unknown as HostServer)),
    denied: () => undefined,
    note: note => void notes.push(note),
    failed: error => {
      throw error
    },
  })
  const answer = async (n: number): Promise<void> => {
    await store.commit(answers.ops('s', said(n), 'c', `answer ${n}`, turn(n)))
    await answers.send('s')
  }
  const up = (how: LiveConnection['publish'] = async (channel, [block]) => void posted.push([channel, block])): void => {
    publish = how
  }
  return { clock, notes, posted, answers, answer, up }
}

test('an answer whose server is away, or whose line breaks, is posted when it is there again, in order', async () => {
  const { clock, notes, posted, answers, answer, up } = world()
  await answer(1)
  clock.advance(1)
  up(() => Promise.reject(new ConnectionError('lost', 'gone')))
  await answer(2)
  expect([posted, notes]).toEqual([[], []])
  up()
  await answers.send('s')
  await answers.send('s')
  expect(posted).toEqual([1, 2].map(n => ['room', { type: 'text', text: `answer ${n}` }]))
  expect(notes.map(({ outcome, inferenceId }) => [outcome, inferenceId])).toEqual([
    ['success', 'inf-1'],
    ['success', 'inf-2'],
  ])
})

test('one that is a day late is not posted, and that is noted', async () => {
  const { clock, notes, posted, answers, answer, up } = world()
  await answer(1)
  clock.advance(24 * 60 * 60_000 + 1)
  up()
  await answers.send('s')
  expect([posted, notes.map(({ outcome, why }) => [outcome, why?.code])]).toEqual([[], [['dropped', 'PUBLISH_TOO_LATE']]])
})

test('of what is said to nobody the newest of each channel are kept, each once, and shown once', () => {
  const ambient = new AmbientMessages()
  for (let n = 0; n < 30; n++) ambient.keep('s', said(n))
  ambient.keep('s', said(29))
  ambient.keep('s', said(1, 'other'))
  const taken = ambient.take('s', said(99))
  expect(taken.map(({ eventId }) => eventId)).toEqual(Array.from({ length: 20 }, (_, at) => `e-room-${at + 10}`))
  expect([ambient.take('s', said(99)), ambient.take('elsewhere', said(99, 'other'))]).toEqual([[], []])
  expect(ambient.take('s', said(99, 'other'))).toHaveLength(1)
  for (let n = 0; n < 300; n++) ambient.keep('s', said(0, `c${n}`))
  expect([ambient.take('s', said(0, 'c0')), ambient.take('s', said(0, 'c299'))].map(({ length }) => length)).toEqual([0, 1])
})

test('only messages of channels that are tagged so are meant for nobody', () => {
  const { channel: _, ...pushed } = said(1)
  expect([said(1), said(1, 'room', []), said(1, 'room', ['chat:addressed']), pushed].map(AmbientMessages.is)).toEqual([
    true,
    false,
    false,
    false,
  ])
})

test('what was said to nobody and comes again, because its server did not hear that it was taken, is not shown again', () => {
  const ambient = new AmbientMessages()
  ambient.keep('s', said(1))
  const shown = ambient.take('s', said(99))
  ambient.keep('s', said(1))
  expect([shown, ambient.take('s', said(99))]).toEqual([[said(1)], []])
  // What was taken for a turn that failed is.
  for (const each of shown) ambient.putBack('s', each)
  expect(ambient.take('s', said(99))).toEqual([said(1)])
})
