/** What a client can do with the fixture, as sentences. Each says on which revisions it holds; a cell is all of them that do. */
import { expect } from 'vitest'
import { McpError } from '../../src/client/index.ts'
import type { RevisionId } from '../../src/server/index.ts'
import { type Cell, isStateless, since } from './cell.ts'
import { heard } from './heard.ts'

export interface Sentence {
  readonly says: string
  readonly on?: (revision: RevisionId) => boolean
  readonly check: (cell: Cell) => Promise<void>
}

const official = (revision: RevisionId): boolean => revision !== 's3'

/** Also said of servers behind a gateway. */
export const readsResources: Pick<Sentence, 'says' | 'check'> = {
  says: 'reads resources, by their URI and by a template',
  check: async ({ client, revision }) => {
    expect(await client.readResource('memo://today')).toMatchObject({ contents: [{ text: 'Feed the fish' }] })
    expect(await client.readResource('memo://monday/morning')).toMatchObject({
      contents: [{ text: 'Rest in the morning of monday' }],
    })
    expect((await all(client.resourceTemplates())).map(({ name }) => name)).toEqual(['day'])
    await expect(client.readResource('memo://nothing')).rejects.toMatchObject({
      code: revision === '2026-07-28' ? -32602 : -32002,
    })
  },
}

/** Also said of servers behind a gateway. */
export const getsPrompts: Pick<Sentence, 'says' | 'check'> = {
  says: 'lists and gets prompts',
  check: async ({ client }) => {
    expect((await all(client.prompts())).map(({ name }) => name)).toEqual(['brief'])
    const { messages } = await client.getPrompt('brief', { topic: 'whales' })
    expect(messages[0]).toEqual({ role: 'user', content: { type: 'text', text: 'Brief me on whales.' } })
  },
}

const atRest: readonly Sentence[] = [
  {
    says: 'speaks the wire that it settled on',
    check: async ({ client, revision }) => {
      expect(client.revision).toBe(revision)
      expect((await client.callTool('wire')).text).toBe(revision)
      expect(client.server?.name).toBe('fixture')
    },
  },
  {
    says: 'lists all tools over its pages, in the words of its wire',
    check: async ({ client, revision }) => {
      const tools = await all(client.tools())
      expect(tools.length).toBe(20)
      const [greet] = tools
      expect([greet?.name, greet?.title]).toEqual(['greet', since(revision, '2025-06-18') ? 'Greet' : undefined])
      expect(greet?.icons !== undefined).toBe(since(revision, '2025-11-25'))
    },
  },
  {
    says: 'calls a tool and gets its text and, where there is such a thing, structured content',
    check: async ({ client, revision }) => {
      const { text, structured, isError } = await client.callTool('greet', { name: 'Ada' })
      expect({ text, isError }).toEqual({ text: '{"greeting":"Hello, Ada"}', isError: false })
      if (since(revision, '2025-06-18') || revision === 's3') expect(structured).toEqual({ greeting: 'Hello, Ada' })
      else expect(structured).toBeUndefined()
    },
  },
  {
    says: 'gets a result that is no object as its wire has it, and the schema it promised agrees',
    check: async ({ client, revision }) => {
      const { text, structured } = await client.callTool('count', { to: 2 })
      expect(text).toBe('[1,2]')
      if (revision === '2026-07-28' || revision === 's3') expect(structured).toEqual([1, 2])
      else if (since(revision, '2025-06-18')) expect(structured).toEqual({ result: [1, 2] })
    },
  },
  {
    says: 'gets blocks of every kind or what stands for them',
    on: official,
    check: async ({ client, revision }) => {
      const { content } = await client.callTool('media')
      const link = since(revision, '2025-06-18') ? 'resource_link' : 'text'
      const sound = since(revision, '2025-03-26') ? 'audio' : 'resource'
      expect(content.map(({ type }) => type)).toEqual(['text', 'image', sound, 'resource', link])
    },
  },
  {
    says: 'is told of a failed tool by its result, of a wrong call as its wire does',
    check: async ({ client, revision }) => {
      expect(await client.callTool('fail', { how: 'result' })).toMatchObject({ isError: true, text: 'It did not work' })
      await expect(client.callTool('nobody')).rejects.toBeInstanceOf(McpError)
      const wrong = client.callTool('greet', { name: '' })
      if (revision === 's3') await expect(wrong).rejects.toMatchObject({ code: 4001, message: expect.stringContaining('name') })
      else expect(await wrong).toMatchObject({ isError: true, text: expect.stringContaining('name') })
    },
  },
  {
    says: 'lists resources',
    check: async ({ client }) => {
      expect((await all(client.resources())).map(({ name }) => name)).toEqual(['today', 'pixel'])
    },
  },
  { ...readsResources, on: official },
  { ...getsPrompts, on: official },
  {
    says: 'completes arguments, by what is filled in where the wire carries it',
    on: official,
    check: async ({ client, revision }) => {
      expect((await client.complete({ prompt: 'brief' }, { name: 'topic', value: 'wh' })).values).toEqual(['whales'])
      const part = await client.complete(
        { template: 'memo://{day}/{part}' },
        { name: 'part', value: '' },
        { arguments: { day: 'monday' } },
      )
      expect(part.values).toEqual(since(revision, '2025-06-18') ? ['morning'] : ['morning', 'evening'])
    },
  },
]

const asking: readonly Sentence[] = [
  {
    says: 'answers questions to the user, where they exist',
    on: official,
    check: async ({ client, revision }) => {
      const { text, isError } = await client.callTool('order')
      if (since(revision, '2025-06-18')) expect(text).toBe('2 cod')
      else expect(isError).toBe(true)
    },
  },
  {
    says: 'sends the user to a page, where that exists',
    on: revision => since(revision, '2025-11-25'),
    check: async ({ client }) => expect((await client.callTool('pay')).text).toBe('Payment: accept'),
  },
  {
    says: 'answers questions to the model and for its folders',
    on: official,
    check: async ({ client }) => {
      expect((await client.callTool('rhyme')).text).toBe('The model says dish')
      expect((await client.callTool('where')).text).toBe('home')
    },
  },
  {
    says: 'answers several questions at once and in several rounds',
    on: revision => since(revision, '2025-06-18'),
    check: async ({ client }) => expect((await client.callTool('plan')).text).toBe('cod from 1 folder(s), sure, at dawn'),
  },
  {
    says: 'is refused what cannot be asked on its wire, by the result',
    on: revision => revision === 's3',
    check: async ({ client }) => expect(await client.callTool('order')).toMatchObject({ isError: true }),
  },
]

const atWork: readonly Sentence[] = [
  {
    says: 'hears how far a call has come',
    check: async ({ client, revision }) => {
      const steps: number[] = []
      await client.callTool('work', undefined, { onProgress: ({ progress }) => steps.push(progress) })
      expect(steps.slice(0, 2)).toEqual(revision === 's3' ? [25, 75] : [1, 3])
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
    },
  },
  {
    says: 'cancels a call, and the work stops',
    check: async ({ client }) => {
      const abort = new AbortController()
      const waiting = client.callTool('wait', undefined, { signal: abort.signal, onProgress: () => abort.abort() })
      await expect(waiting).rejects.toMatchObject({ name: 'AbortError' })
      expect((await client.callTool('stopped', { atLeast: 1 })).text).toBe('1')
    },
  },
  {
    says: 'waits for a call that becomes a task',
    on: revision => since(revision, '2025-11-25'),
    check: async ({ client }) => {
      const [coffee] = await Promise.all([client.callTool('brew', {}, { task: true }), client.callTool('pour')])
      expect(coffee.text).toBe('Coffee')
    },
  },
  {
    says: 'gets an answer to ping, where there is one',
    on: revision => official(revision) && !isStateless(revision),
    check: ({ client }) => client.ping(),
  },
  {
    says: 'hears that the list of tools has changed',
    check: ({ client }) => heard(client.changes('tools'), () => client.callTool('change', { what: 'tools' })),
  },
  {
    says: 'hears that a resource was updated',
    on: official,
    check: ({ client }) => heard(client.resourceUpdates('memo://today'), () => client.callTool('change', { what: 'content' })),
  },
]

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}

export const sentences: readonly Sentence[] = [...atRest, ...asking, ...atWork]

/** Checks all sentences that hold on the cell's revision; a failure says which one it was. */
export async function checkAll(cell: Cell): Promise<void> {
  for (const { says, on, check } of sentences) {
    if (on?.(cell.revision) === false) continue
    try {
      await check(cell)
    } catch (cause) {
      throw new Error(`The client ${says}: ${cause instanceof Error ? cause.message : cause}`, { cause })
    }
  }
}
