/** What a client can do with the fixture through a gateway, as sentences: each says on which wires of both ends it holds, and what is refused where it does not. */
import { expect } from 'vitest'
import type { RevisionId } from '../../src/server/index.ts'
import { type Cell, isStateless, since } from '../matrix/cell.ts'
import { heard } from '../matrix/heard.ts'
import { getsPrompts, readsResources } from '../matrix/sentences.ts'

/** A client at one revision, and a server at another. */
export interface Bridge extends Cell {
  readonly server: RevisionId
}

interface Sentence {
  readonly says: string
  readonly on?: (client: RevisionId, server: RevisionId) => boolean
  readonly check: (bridge: Bridge) => Promise<void>
}

const official = (client: RevisionId, server: RevisionId): boolean => client !== 's3' && server !== 's3'
const bothSince =
  (first: RevisionId) =>
  (client: RevisionId, server: RevisionId): boolean =>
    since(client, first) && since(server, first)

const atRest: readonly Sentence[] = [
  {
    says: 'speaks its own wire, and the server its own',
    check: async ({ client, revision, server }) => {
      expect(client.revision).toBe(revision)
      expect((await client.callTool('wire')).text).toBe(server)
      expect(client.server?.name).toBe('vivarium-gateway')
    },
  },
  {
    says: 'lists all tools, in the words that both wires have',
    check: async ({ client, revision, server }) => {
      const tools = await all(client.tools())
      expect(tools.length).toBe(20)
      const [greet] = tools
      const titled = bothSince('2025-06-18')(revision, server)
      expect([greet?.name, greet?.title]).toEqual(['greet', titled ? 'Greet' : undefined])
      expect(greet?.icons !== undefined).toBe(bothSince('2025-11-25')(revision, server))
      if (since(revision, '2025-06-18')) {
        expect(greet?._meta?.['dev.vivarium/origin']).toEqual({ server: 'fixture', name: 'greet' })
        expect(greet?.outputSchema !== undefined).toBe(since(server, '2025-06-18'))
      }
    },
  },
  {
    says: 'calls a tool and gets its text and, where both have such a thing, structured content',
    check: async ({ client, revision, server }) => {
      const { text, structured, isError } = await client.callTool('greet', { name: 'Ada' })
      expect({ text, isError }).toEqual({ text: '{"greeting":"Hello, Ada"}', isError: false })
      if (bothSince('2025-06-18')(revision, server)) expect(structured).toEqual({ greeting: 'Hello, Ada' })
    },
  },
  {
    says: 'gets a result that is no object as its wire has it, and the schema it promised agrees',
    check: async ({ client, revision, server }) => {
      const { text, structured } = await client.callTool('count', { to: 2 })
      // The dialect has one output, which is the value as the server's wire has it.
      const wrapped = revision === 's3' && since(server, '2025-06-18') && server !== '2026-07-28'
      expect(text).toBe(wrapped ? '{"result":[1,2]}' : '[1,2]')
      if (!bothSince('2025-06-18')(revision, server)) return
      if (revision === '2026-07-28' && server === '2026-07-28') expect(structured).toEqual([1, 2])
      else expect(structured).toEqual({ result: [1, 2] })
    },
  },
  {
    says: 'gets blocks of every kind that both wires have, or what stands for them',
    on: official,
    check: async ({ client, revision, server }) => {
      const { content } = await client.callTool('media')
      const link = bothSince('2025-06-18')(revision, server) ? 'resource_link' : 'text'
      const sound = bothSince('2025-03-26')(revision, server) ? 'audio' : 'resource'
      expect(content.map(({ type }) => type)).toEqual(['text', 'image', sound, 'resource', link])
    },
  },
  {
    says: 'is told of a failed tool by its result, of a wrong call as the server does',
    check: async ({ client, server }) => {
      expect(await client.callTool('fail', { how: 'result' })).toMatchObject({ isError: true, text: 'It did not work' })
      await expect(client.callTool('nobody')).rejects.toMatchObject({ name: 'McpError' })
      const wrong = client.callTool('greet', { name: '' })
      if (server !== 's3') expect(await wrong).toMatchObject({ isError: true, text: expect.stringContaining('name') })
      else await expect(wrong).rejects.toMatchObject({ name: 'McpError', message: expect.stringContaining('name') })
    },
  },
  {
    says: 'lists resources',
    check: async ({ client }) => expect((await all(client.resources())).map(({ name }) => name)).toEqual(['today', 'pixel']),
  },
  { ...readsResources, on: official },
  { ...getsPrompts, on: official },
  {
    says: 'completes arguments, by what is filled in where both wires carry it',
    on: official,
    check: async ({ client, revision, server }) => {
      expect((await client.complete({ prompt: 'brief' }, { name: 'topic', value: 'wh' })).values).toEqual(['whales'])
      const template = { template: 'memo://{day}/{part}' }
      const part = await client.complete(template, { name: 'part', value: '' }, { arguments: { day: 'monday' } })
      expect(part.values).toEqual(bothSince('2025-06-18')(revision, server) ? ['morning'] : ['morning', 'evening'])
    },
  },
]

const asking: readonly Sentence[] = [
  {
    says: 'answers questions to the user where both wires have them, and is refused by name where one has not',
    check: async ({ client, revision, server }) => {
      const { text, isError } = await refusable(client.callTool('order'))
      if (bothSince('2025-06-18')(revision, server)) expect(text).toBe('2 cod')
      else expect([isError, text]).toEqual([true, expect.stringMatching(/elicitation/)])
    },
  },
  {
    says: 'sends the user to a page where both wires have that, and is refused by name where one has not',
    on: official,
    check: async ({ client, revision, server }) => {
      const { text, isError } = await refusable(client.callTool('pay'))
      if (bothSince('2025-11-25')(revision, server)) expect(text).toBe('Payment: accept')
      else expect([isError, text]).toEqual([true, expect.stringMatching(/elicitation/)])
    },
  },
  {
    says: 'answers questions to the model and for its folders, and is refused by name where its wire has none',
    check: async ({ client, revision, server }) => {
      const [rhyme, where] = [await refusable(client.callTool('rhyme')), await refusable(client.callTool('where'))]
      if (official(revision, server)) expect([rhyme.text, where.text]).toEqual(['The model says dish', 'home'])
      else expect([rhyme.isError, where.isError]).toEqual([true, true])
    },
  },
  {
    says: 'answers several questions at once and in several rounds',
    on: bothSince('2025-06-18'),
    check: async ({ client }) => expect((await client.callTool('plan')).text).toBe('cod from 1 folder(s), sure, at dawn'),
  },
]

const atWork: readonly Sentence[] = [
  {
    says: 'hears how far a call has come',
    check: async ({ client }) => {
      const steps: number[] = []
      await client.callTool('work', undefined, { onProgress: ({ progress }) => steps.push(progress) })
      expect(steps.length).toBeGreaterThanOrEqual(2)
      expect(steps.toSorted((a, b) => a - b)).toEqual(steps)
    },
  },
  {
    says: 'hears the log from the level that it set',
    on: official,
    check: async ({ client, logs }) => {
      await client.setLogLevel('warning')
      logs.length = 0
      await client.callTool('work')
      expect(logs).toEqual([{ level: 'warning', data: { fish: 'small' }, logger: 'kitchen' }])
      await client.setLogLevel('debug')
      logs.length = 0
      await client.callTool('work')
      expect(logs.map(({ level }) => level)).toEqual(['debug', 'warning'])
    },
  },
  {
    says: 'cancels a call, and the work stops at the server',
    check: async ({ client }) => {
      const abort = new AbortController()
      const waiting = client.callTool('wait', undefined, { signal: abort.signal, onProgress: () => abort.abort() })
      await expect(waiting).rejects.toMatchObject({ name: 'AbortError' })
      expect((await client.callTool('stopped', { atLeast: 1 })).text).toBe('1')
    },
  },
  {
    says: 'waits for a call that becomes a task, where its wire has tasks; where it has none the gateway waits',
    check: async ({ client }) => {
      const [coffee] = await Promise.all([client.callTool('brew', {}, { task: true }), client.callTool('pour')])
      expect(coffee.text).toBe('Coffee')
    },
  },
  {
    says: 'uses a tool that must be a task, whether or not its wire has tasks',
    on: (_, server) => since(server, '2025-11-25'),
    check: async ({ client }) => {
      const [toast] = await Promise.all([client.callTool('toast'), client.callTool('pour')])
      expect(toast).toMatchObject({ text: 'The toast is burnt', isError: true })
    },
  },
  {
    says: 'gets an answer to ping, where there is one',
    on: client => client !== 's3' && !isStateless(client),
    check: ({ client }) => client.ping(),
  },
  {
    says: 'hears that the list of tools has changed',
    check: ({ client }) => heard(client.changes('tools'), () => client.callTool('change', { what: 'tools' })),
  },
  {
    says: 'hears that prompts and resources have changed',
    on: official,
    check: async ({ client }) => {
      await heard(client.changes('prompts'), () => client.callTool('change', { what: 'prompts' }))
      await heard(client.changes('resources'), () => client.callTool('change', { what: 'resources' }))
    },
  },
  {
    says: 'hears that a resource was updated',
    on: official,
    check: ({ client }) => heard(client.resourceUpdates('memo://today'), () => client.callTool('change', { what: 'content' })),
  },
]

/** A refusal is a result on some wires and an error on others. */
async function refusable(call: Promise<{ text: string; isError: boolean }>): Promise<{ text: string; isError: boolean }> {
  try {
    return await call
  } catch (error) {
    return { isError: true, text: error instanceof Error ? error.message : String(error) }
  }
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}

/** Checks all sentences that hold on the wires of both ends; a failure says which one it was. */
export async function checkBridge(bridge: Bridge): Promise<void> {
  for (const { says, on, check } of [...atRest, ...asking, ...atWork]) {
    if (on?.(bridge.revision, bridge.server) === false) continue
    try {
      await check(bridge)
    } catch (cause) {
      throw new Error(`The client ${says}: ${cause instanceof Error ? cause.message : cause}`, { cause })
    }
  }
}
