/** The client at each revision: whatever a server says, every call ends, with a result or with a failure that is documented. */

import type { Client } from '../../../src/client/client.ts'
import { connect } from '../../../src/client/index.ts'
import { isRecord } from '../../../src/jsonrpc/message.ts'
import type { RevisionId } from '../../../src/revisions/index.ts'
import type { FakeClock } from '../../../src/testing/index.ts'
import { memoryPair } from '../../../src/transports/memory.ts'
import { everyRevision } from '../../spec/wire.ts'
import { corpusOf, type Frame } from '../corpus.ts'
import { bentText, excessive, scalar, value } from '../json.ts'
import { leapClock } from '../leap-clock.ts'
import { mutated } from '../mutate.ts'
import type { Source } from '../source.ts'
import { outlasted, type Target, target } from '../target.ts'

/** How the server reacts to one request: the answer is made when the request is known. */
interface Reaction {
  readonly answer: (method: string, id: unknown) => readonly string[]
}

interface Input {
  /** The opening goes well, so that more than that is tried. */
  readonly welcome: boolean
  readonly reactions: readonly Reaction[]
  readonly calls: readonly number[]
  readonly pushed: readonly string[]
}

type Call = (client: Client) => Promise<unknown>

const drained = async (list: AsyncIterable<unknown>): Promise<void> => {
  for await (const _ of list);
}

const calls: readonly Call[] = [
  client => client.callTool('greet', { name: 'Ann' }),
  client => drained(client.tools()),
  client => drained(client.resources()),
  client => drained(client.resourceTemplates()),
  client => drained(client.prompts()),
  client => client.readResource('memo://today'),
  client => client.getPrompt('brief', { topic: 'whales' }),
  client => client.complete({ prompt: 'brief' }, { name: 'topic', value: 'w' }),
  client => client.ping(),
  client => client.setLogLevel('error'),
  client => client.callTool('brew', {}, { onProgress: () => {} }),
  client => client.callTool('order', {}),
]

export const clients: readonly Target[] = everyRevision.map(clientAt)

function clientAt(revision: RevisionId): Target {
  return target<Input>({
    name: `client@${revision}`,
    make: source => ({
      welcome: !source.once(6),
      reactions: [reaction(source, revision), ...source.list(5, () => reaction(source, revision))],
      calls: [source.int(calls.length), ...source.list(2, () => source.int(calls.length))],
      pushed: source.list(3, () => pushedText(source, revision)),
    }),
    check: input => converse(revision, input),
  })
}

/** All choices are made beforehand; only the id is filled in later. */
function reaction(source: Source, revision: RevisionId): Reaction {
  const way = source.int(12)
  const { results } = corpusOf(revision)
  const choices = new Map([...results].map(([method, list]) => [method, source.pick(list)]))
  const other = value(source, 3)
  const bends = [source.int(1 << 16), source.int(1 << 16)] as const
  const bent = new Map<string, unknown>()
  for (const [method, result] of choices) bent.set(method, way < 4 ? result : mutated(source, result))
  const error = mutated(source, { code: -32601, message: 'There is no such method', data: { a: 1 } })
  const strange = scalar(source)
  const huge = source.once(200) ? excessive(source) : undefined
  return {
    answer: (method, id) => {
      const result = bent.has(method) ? bent.get(method) : other
      if (huge !== undefined) return [`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${huge}}`]
      if (way === 7) return []
      if (way === 8) return [JSON.stringify({ jsonrpc: '2.0', id, error })]
      if (way === 9) return [JSON.stringify({ jsonrpc: '2.0', id: strange, result })]
      if (way === 10) return [JSON.stringify({ jsonrpc: '2.0', id, result, error })]
      const text = JSON.stringify({ jsonrpc: '2.0', id, result })
      if (way === 11) return [text.slice(0, bends[0] % text.length) + text.slice(bends[1] % text.length), text]
      return way === 6 ? [text, text] : [text]
    },
  }
}

function pushedText(source: Source, revision: RevisionId): string {
  const { pushed } = corpusOf(revision)
  const right =
    pushed.length === 0 || source.once(4) ? { jsonrpc: '2.0', method: 'roots/list', id: source.int(9) } : source.pick(pushed)
  const text = JSON.stringify(mutated(source, { ...right, ...(right['id'] === undefined ? {} : { id: source.int(9) }) }))
  return source.once(8) ? bentText(source, text) : text
}

/** Errors by which a call may end. Others are ours. */
const documented = new Set(['McpError', 'ConnectionError', 'AbortError', 'Problem', 'SchemaError'])

async function converse(revision: RevisionId, input: Input): Promise<void> {
  const clock = leapClock()
  const [near, far] = memoryPair({ clock })
  const reactions = [...input.reactions]
  let open = true
  const say = (text: string): void => {
    const sent = far.send(text)
    if (sent !== undefined) sent.catch(() => {})
  }
  await far.start({
    frame: text => {
      const frame = JSON.parse(text) as Frame
      const { id, method } = frame
      if (!isRecord(frame) || id === undefined || typeof method !== 'string') return
      const opening = method === 'initialize' || method === 'server/discover'
      const good = opening && input.welcome ? corpusOf(revision).results.get(method)?.[0] : undefined
      if (good !== undefined) return say(JSON.stringify({ jsonrpc: '2.0', id, result: good }))
      for (const answer of reactions.shift()?.answer(method, id) ?? []) say(answer)
    },
    fault: () => {},
    closed: () => {
      open = false
    },
  })
  await outlasted(talk(input, revision, near, clock, say), clock)
  if (open) await far.close()
}

async function talk(
  input: Input,
  revision: RevisionId,
  connection: ReturnType<typeof memoryPair>[0],
  clock: FakeClock,
  say: (text: string) => void,
): Promise<void> {
  const client = await settled(
    connect(connection, {
      revisions: [revision],
      clock,
      roots: [{ uri: 'file:///work' }],
      onElicit: () => ({ action: 'accept', content: { fish: 'cod', count: 1 } }),
      onSample: () => ({ role: 'assistant', content: { type: 'text', text: 'dish' }, model: 'm' }),
      onTrace: () => {},
    }),
  )
  if (client === undefined) return
  for (const text of input.pushed) say(text)
  await Promise.all(input.calls.map(call => settled(Promise.resolve().then(() => calls[call]?.(client)))))
  await settled(client.close())
}

/** Undefined when it failed in a way that is documented. */
async function settled<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise
  } catch (error) {
    if (error instanceof Error && documented.has(error.name)) return undefined
    throw error
  }
}
