import { expect, onTestFinished, test } from 'vitest'
import { type Client, McpError, type RevisionId } from '../../src/client/index.ts'
import { type Cell, isStateless, openCell } from '../matrix/cell.ts'
import { heard } from '../matrix/heard.ts'
import { peerFile, startPeer } from './peer-process.ts'

interface Peer {
  readonly peer: 'sdk-v1-server' | 'sdk-v2-server'
  readonly carrier: 'stdio' | 'http' | 'sse' | 'sessions'
  /** What our client allows itself; undefined: its default, so that it probes. */
  readonly revisions?: readonly RevisionId[]
  readonly settles: RevisionId
  /** A peer without sessions can neither ask nor tell unasked, and a cancel does not reach what it cancels. */
  readonly sessionless?: boolean
}

const legacy: readonly RevisionId[] = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']

const cells: readonly Peer[] = [
  { peer: 'sdk-v1-server', carrier: 'stdio', settles: '2025-11-25' },
  { peer: 'sdk-v1-server', carrier: 'http', settles: '2025-11-25' },
  { peer: 'sdk-v1-server', carrier: 'sse', settles: '2025-11-25' },
  { peer: 'sdk-v1-server', carrier: 'stdio', revisions: ['2024-11-05'], settles: '2024-11-05' },
  { peer: 'sdk-v1-server', carrier: 'http', revisions: ['2025-03-26'], settles: '2025-03-26' },
  { peer: 'sdk-v1-server', carrier: 'http', revisions: ['2025-06-18'], settles: '2025-06-18' },
  { peer: 'sdk-v2-server', carrier: 'stdio', settles: '2026-07-28' },
  { peer: 'sdk-v2-server', carrier: 'stdio', revisions: legacy, settles: '2025-11-25' },
  { peer: 'sdk-v2-server', carrier: 'http', settles: '2026-07-28' },
  { peer: 'sdk-v2-server', carrier: 'http', revisions: legacy, settles: '2025-11-25', sessionless: true },
  { peer: 'sdk-v2-server', carrier: 'sessions', settles: '2025-11-25' },
]

for (const cell of cells) {
  const allows =
    cell.revisions === undefined
      ? 'our client'
      : `our client of ${cell.revisions.length === 1 ? cell.revisions[0] : 'the older era'}`
  test(`${allows} ⇄ ${cell.peer} over ${cell.carrier}`, async () => {
    const opened = await open(cell)
    expect(opened.client.revision).toBe(cell.settles)
    await offers(opened.client)
    await works(opened)
    if (cell.peer === 'sdk-v1-server' && cell.settles === '2025-11-25')
      expect((await opened.client.callTool('brew')).text).toBe('Coffee')
    if (cell.sessionless !== true) {
      await asks(opened)
      await cancels(opened.client)
      await heard(opened.client.changes('tools'), () => opened.client.callTool('change'))
    }
    await opened.client.close()
  })
}

async function open({ peer, carrier, revisions, settles }: Peer): Promise<Cell> {
  const options = revisions === undefined ? {} : { revisions }
  if (carrier === 'stdio') return openCell({ command: process.execPath, args: [peerFile(peer), carrier] }, settles, options)
  const process_ = await startPeer(peer, carrier)
  onTestFinished(process_.close)
  return openCell(process_.url, settles, options)
}

/** list · call · structured · failure · resource · template · prompt · completion */
async function offers(client: Client): Promise<void> {
  const names: string[] = []
  for await (const { name } of client.tools()) names.push(name)
  expect(names).toEqual(expect.arrayContaining(['greet', 'order', 'wait']))
  expect(await client.callTool('greet', { name: 'Ada' })).toMatchObject({ text: 'Hello, Ada', isError: false })
  expect(await client.callTool('fail')).toMatchObject({ text: 'It did not work', isError: true })
  expect(await outcome(client.callTool('greet', {}))).toMatch(/name/)
  expect(await client.readResource('memo://today')).toMatchObject({ contents: [{ text: 'Feed the fish' }] })
  expect(await client.readResource('memo://days/monday')).toMatchObject({ contents: [{ text: 'Rest on monday' }] })
  await expect(client.readResource('memo://nothing')).rejects.toBeInstanceOf(McpError)
  const { messages } = await client.getPrompt('brief', { topic: 'whales' })
  expect(messages).toEqual([{ role: 'user', content: { type: 'text', text: 'Brief me on whales.' } }])
  expect((await client.complete({ prompt: 'brief' }, { name: 'topic', value: 'wh' })).values).toEqual(['whales'])
}

/** Some peers answer bad arguments by an error, some by a result that says so. */
async function outcome(call: Promise<{ text: string }>): Promise<string> {
  return call.then(
    ({ text }) => text,
    error => (error as Error).message,
  )
}

/** progress · log */
async function works({ client, logs, revision }: Cell): Promise<void> {
  if (isStateless(revision)) await client.setLogLevel('warning')
  const steps: number[] = []
  expect((await client.callTool('work', undefined, { onProgress: ({ progress }) => steps.push(progress) })).text).toBe('Done')
  expect(steps).toEqual([1, 2])
  expect(logs.map(({ data }) => data)).toContainEqual({ fish: 'small' })
}

/** elicitation · sampling · roots */
async function asks({ client, revision }: Cell): Promise<void> {
  if (revision !== '2024-11-05' && revision !== '2025-03-26') expect((await client.callTool('order')).text).toBe('2 cod')
  expect((await client.callTool('rhyme')).text).toBe('The model says dish')
  expect((await client.callTool('where')).text).toBe('home')
}

async function cancels(client: Client): Promise<void> {
  const abort = new AbortController()
  const waiting = client.callTool('wait', undefined, { signal: abort.signal, onProgress: () => abort.abort() })
  await expect(waiting).rejects.toMatchObject({ name: 'AbortError' })
  for (let tries = 0; tries < 100 && (await client.callTool('stopped')).text === '0'; tries++)
    await new Promise(resolve => setTimeout(resolve, 10))
  expect((await client.callTool('stopped')).text).toBe('1')
}
