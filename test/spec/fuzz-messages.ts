/** Messages that are nearly right, and some that are nothing like it: for properties that hold for all of them. */
import fc from 'fast-check'
import type { RevisionId } from '../../src/revisions/index.ts'
import { envelope, enveloped, type Frame } from './wire.ts'

const strange = [
  '',
  ' ',
  'constructor',
  '__proto__',
  'toString',
  'x'.repeat(300),
  '\u0000\u001b[31m',
  '\ud800',
  '雪',
  '=?base64?YQ==?=',
]

const json = fc.jsonValue({ maxDepth: 3, stringUnit: 'grapheme' })
const word = fc.oneof(fc.constantFrom(...strange), fc.string({ maxLength: 12 }))

/** Whatever a member may be instead of what it should be. */
const wrong = fc.oneof(json, word, fc.constantFrom<unknown>(null, true, 0, -1, 1.5, 1e300, [], {}, [[]], { a: null }))

const nearly = (right: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 4, arbitrary: right }, { weight: 1, arbitrary: wrong })

function members(shape: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<Frame> {
  const nearlyAll = Object.fromEntries(Object.entries(shape).map(([name, value]) => [name, nearly(value)]))
  return fc.record(nearlyAll, { requiredKeys: [] }) as fc.Arbitrary<Frame>
}

const name = fc.oneof(fc.constantFrom('echo', 'asks', 'fails', 'task', 'slow', 'brief'), word)
const uri = fc.oneof(fc.constantFrom('memo://one', 'note://7', 'note://{id}'), word)
const args = members({ text: fc.string(), deep: json })

const shapes: Readonly<Record<string, fc.Arbitrary<Frame>>> = {
  'tools/call': members({
    name,
    arguments: args,
    task: members({ ttl: fc.integer() }),
    requestState: word,
    inputResponses: members({ 'elicit-1': json }),
  }),
  'tools/invoke': members({ name, arguments: args }),
  'tools/list': members({ cursor: word }),
  'resources/list': members({ cursor: word }),
  'resources/templates/list': members({ cursor: word }),
  'resources/read': members({ uri, requestState: word }),
  'resources/subscribe': members({ uri }),
  'resources/unsubscribe': members({ uri }),
  'prompts/list': members({ cursor: word }),
  'prompts/get': members({ name, arguments: members({ topic: fc.string() }) }),
  'completion/complete': members({
    ref: members({ type: fc.constantFrom('ref/prompt', 'ref/resource'), name, uri }),
    argument: members({ name: fc.constantFrom('topic', 'id'), value: fc.string() }),
    context: members({ arguments: members({ topic: fc.string() }) }),
  }),
  'logging/setLevel': members({ level: fc.constantFrom('debug', 'error') }),
  'server/discover': members({}),
  'tasks/get': members({ taskId: word }),
  'tasks/result': members({ taskId: word }),
  'tasks/cancel': members({ taskId: word }),
  'tasks/update': members({ taskId: word, inputResponses: members({}) }),
  'tasks/list': members({ cursor: word }),
  'sampling/createMessage': members({ messages: fc.array(json), maxTokens: fc.integer() }),
  'roots/list': members({}),
  ping: members({}),
  // Nothing is under way for "nobody": a cancel that found its call would rightly keep it from being answered.
  'notifications/cancelled': members({ requestId: fc.constant('nobody'), reason: word }),
  'notifications/progress': members({ progressToken: word, progress: fc.double(), total: fc.double() }),
  'notifications/initialized': members({}),
  'notifications/roots/list_changed': members({}),
}

const paramsOf = new Map(Object.entries(shapes))
const methods = [...paramsOf.keys()]
/** A ping that names no version is of an older wire, whatever else is said on the pipe: it would be judged by the wrong rules here. */
const knownAt = (revision: RevisionId): fc.Arbitrary<string> =>
  fc.constantFrom(...(Object.keys(envelope(revision)).length > 0 ? methods.filter(method => method !== 'ping') : methods))

function withMeta(revision: RevisionId, params: unknown): fc.Arbitrary<unknown> {
  if (typeof params !== 'object' || params === null || Array.isArray(params)) return fc.constant(params)
  const bent = members({
    progressToken: fc.oneof(fc.integer(), word),
    'io.modelcontextprotocol/logLevel': fc.constantFrom('debug', 'loud'),
    traceparent: word,
  })
  const broken = fc.constantFrom(...Object.keys(envelope(revision)), 'nothing').map(key => ({ ...envelope(revision), [key]: 7 }))
  return fc.oneof(
    { weight: 6, arbitrary: bent.map(_meta => enveloped(revision, { ...(params as Frame), _meta }, { elicitation: {} })) },
    { weight: 1, arbitrary: broken.map(_meta => ({ ...(params as Frame), _meta })) },
    { weight: 1, arbitrary: wrong.map(_meta => ({ ...(params as Frame), _meta })) },
    { weight: 1, arbitrary: fc.constant(params) },
  )
}

const id = fc.oneof(
  { weight: 8, arbitrary: fc.oneof(fc.integer(), fc.string({ maxLength: 8 })) },
  { weight: 1, arbitrary: fc.constantFrom<unknown>(null, 1.5, {}, [], true, 2 ** 53, 'y'.repeat(2_000)) },
)

/** One message, or what passes for one. */
export function message(revision: RevisionId): fc.Arbitrary<unknown> {
  const known = knownAt(revision)
  const request = fc
    .oneof(known, known, known, word)
    .chain(method =>
      (paramsOf.get(method) ?? wrong)
        .chain(params => withMeta(revision, params))
        .chain(params =>
          fc.record(
            { jsonrpc: fc.constant('2.0'), id, method: fc.constant(method), params: fc.constant(params) },
            { requiredKeys: ['jsonrpc', 'method'] },
          ),
        ),
    )
  const answer = fc.record({ jsonrpc: fc.constant('2.0'), id, result: json, error: json }, { requiredKeys: ['jsonrpc'] })
  const bent = fc.record(
    { jsonrpc: nearly(fc.constant('2.0')), id, method: nearly(word), params: wrong, result: json, extra: json },
    { requiredKeys: [] },
  )
  return fc.oneof(
    { weight: 8, arbitrary: request },
    { weight: 1, arbitrary: answer },
    { weight: 2, arbitrary: bent },
    { weight: 1, arbitrary: json },
  )
}
