/** The server's engine at each revision: whatever a client says, every request is answered once under its id, and nothing else is. */
import { isRecord } from '../../../src/jsonrpc/message.ts'
import { type RevisionId, revisionById } from '../../../src/revisions/index.ts'
import { memoryPair } from '../../../src/transports/memory.ts'
import { envelope, everyRevision, helloParams } from '../../spec/wire.ts'
import { Tally } from '../answers.ts'
import { corpusOf, type Frame } from '../corpus.ts'
import { bentText, excessive, scalar, value } from '../json.ts'
import { mutated } from '../mutate.ts'
import type { Source } from '../source.ts'
import { createSubject, type Subject } from '../subject.ts'
import { type Target, target, turn, withRetries } from '../target.ts'

interface Input {
  readonly hello: boolean
  readonly frames: readonly string[]
  /** Given, in turn, to what the server asks; undefined: nothing. */
  readonly answers: readonly unknown[]
}

export const servers: readonly Target[] = everyRevision.map(serverAt)

function serverAt(revision: RevisionId): Target {
  let subject: Subject | undefined
  return target<Input>({
    name: `server@${revision}`,
    make: source => ({
      hello: !source.once(10),
      frames: [frameText(source, revision), ...source.list(4, () => frameText(source, revision))],
      answers: source.list(3, () => (source.once(3) ? undefined : answerTo(source, revision))),
    }),
    check: input => {
      subject ??= createSubject()
      return converse(subject, revision, input)
    },
    close: async () => subject?.server.close(),
  })
}

function frameText(source: Source, revision: RevisionId): string {
  if (source.once(400)) return excessive(source)
  const right = { ...source.pick(corpusOf(revision).said), id: source.int(4) === 0 ? scalar(source) : source.int(1_000) }
  const whole = source.once(6) ? right : withoutId(right, source.once(8))
  const frame = source.int(4) === 0 ? whole : mutated(source, named(whole, revision, source))
  if (source.once(30)) return JSON.stringify([frame, value(source, 2)])
  const text = JSON.stringify(frame)
  return source.once(8) ? bentText(source, text) : text
}

function withoutId({ id, ...rest }: Frame, told: boolean): Frame {
  return told || String(rest['method']).startsWith('notifications/') || rest['method'] === undefined ? rest : { id, ...rest }
}

/** Now and then a request without its envelope, or with one where none belongs. */
function named(frame: Frame, revision: RevisionId, source: Source): Frame {
  if (!source.once(10) || !isRecord(frame['params'])) return frame
  return { ...frame, params: { ...frame['params'], _meta: source.once(2) ? envelope('2026-07-28') : envelope(revision) } }
}

function answerTo(source: Source, revision: RevisionId): unknown {
  const results = corpusOf(revision).said.filter(frame => frame['result'] !== undefined)
  return results.length === 0 || source.once(3) ? value(source, 3) : mutated(source, source.pick(results)['result'])
}

async function converse({ server, clock }: Subject, revision: RevisionId, input: Input): Promise<void> {
  const [near, far] = memoryPair({ clock })
  const tally = new Tally()
  const answers = [...input.answers]
  let failure: unknown
  let closed = false
  const say = (text: string): void => {
    const sent = near.send(text)
    if (sent !== undefined) sent.catch(() => {})
  }
  server.acceptor.accept(far)
  await near.start({
    frame: text => {
      try {
        const heard: unknown = JSON.parse(text)
        for (const frame of Array.isArray(heard) ? heard : [heard]) {
          tally.take(frame)
          const { id, method } = frame as Frame
          const answer = method !== undefined && id !== undefined ? answers.shift() : undefined
          if (answer !== undefined) say(JSON.stringify({ jsonrpc: '2.0', id, result: answer }))
        }
      } catch (error) {
        failure ??= error
      }
    },
    fault: () => {},
    closed: () => {
      closed = true
    },
  })
  const dialect = revision === 's3'
  if (input.hello && revisionById(revision).era === 'session') {
    const hello = {
      jsonrpc: '2.0',
      id: 'hello',
      method: 'initialize',
      params: helloParams(revision, { elicitation: {}, sampling: {}, roots: {} }),
    }
    tally.expect(hello)
    say(JSON.stringify(hello))
    say(JSON.stringify({ jsonrpc: '2.0', method: dialect ? 'initialized' : 'notifications/initialized' }))
  }
  const batches = new Set<string>()
  for (const text of input.frames) {
    expectText(text, tally, batches)
    say(text)
  }
  await withRetries(
    () => closed || failure !== undefined || tally.complete,
    waited => {
      // Nobody answers a question any more: its deadline is what ends it.
      if (waited > 4) clock.advance(waited % 8 === 0 ? 700_000 : 1_000)
    },
  )
  await turn()
  const lost = closed
  await near.close()
  clock.advance(1_000)
  if (failure !== undefined) throw failure
  if (batches.size === 0) tally.check(lost)
}

/** What a text demands. An array may be taken or refused as one, so what is in it is not counted. */
function expectText(text: string, tally: Tally, batches: Set<string>): void {
  let sent: unknown
  try {
    sent = JSON.parse(text)
  } catch {
    return tally.expect(null)
  }
  if (Array.isArray(sent)) return void batches.add(text)
  if (isTooDeep(sent)) return tally.expect(null)
  tally.expect(sent)
  const { id, method, params } = (isRecord(sent) ? sent : {}) as { id?: unknown; method?: unknown; params?: unknown }
  // Neither a request nor an answer, but it may have the id of something that the server asked.
  if (method === undefined) tally.free.add(JSON.stringify(id))
  // What lasts is answered when it ends; what is cancelled may be answered or not.
  if (method === 'subscriptions/listen') tally.free.add(JSON.stringify(id))
  if (!isRecord(params) || (method !== 'notifications/cancelled' && method !== 'cancel')) return
  for (const cancelled of [params['requestId'], params['id']])
    if (cancelled !== undefined) tally.free.add(JSON.stringify(cancelled))
}

function isTooDeep(root: unknown): boolean {
  const open: [unknown, number][] = [[root, 0]]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [at, depth] = next
    if (typeof at !== 'object' || at === null) continue
    if (depth >= 128) return true
    for (const inner of Object.values(at)) open.push([inner, depth + 1])
  }
  return false
}
