/** What a live server asks of its host: pushes, scopes, inference, the model (§7, §9, §11, §12). */
import { answers, shownBy } from '../clients/checks.ts'
import type { LoggedMessage, Observation } from '../clients/log.ts'
import { fitsPattern, is, type JsonPattern, objectsIn, orSkip, sameJson, should } from '../expectations.ts'
import type { Json } from '../scenario.ts'
import { answerTo, called, errorTo, livePlay, liveRows, resultTo, say, type Talk, wishes } from './live-play.ts'
import { event } from './opening.ts'

/** What the server asks while its tool runs, one after the other: the name of each, its method, its parameters. */
type ScriptedRequests = readonly (readonly [as: string, method: string, params: Json])[]

function asking(asked: ScriptedRequests): (talk: Talk) => Promise<void> {
  return async ({ ask }) => {
    for (const [as, method, params] of asked) await ask(as, method, params)
  }
}

const flawed: ScriptedRequests = [
  ['no-event-id', 'push/event', event('lab.push', 'x', { eventId: undefined })],
  ['no-timestamp', 'push/event', event('lab.push', 'x', { timestamp: undefined })],
  ['no-payload', 'push/event', event('lab.push', 'x', { payload: undefined })],
  ['no-content', 'push/event', event('lab.push', 'x', { payload: {} })],
  ['no-set', 'push/event', event('lab.push', 'x', { featureSet: undefined })],
]
const pushed: ScriptedRequests = [
  ...flawed,
  ['disabled', 'push/event', event('lab.off', 'e-off')],
  ['unknown', 'push/event', event('lab.nobody', 'e-nobody')],
  ['first', 'push/event', event('lab.push', 'e-1')],
  ['repeated', 'push/event', event('lab.push', 'e-1')],
  ['model', 'model/info', {}],
  ['wrong-way', 'context/beforeInference', { inferenceId: 'i', conversationId: 'c', turnIndex: 0, userMessage: null }],
]
const pushes = livePlay('push', { during: asking(pushed) })

const payload = { path: '/project/a.ts', mode: 'append' }

const elevations = livePlay('elevate', {
  during: asking([
    ['none', 'scope/elevate', { featureSet: 'lab.files' }],
    ['unlabelled', 'scope/elevate', { featureSet: 'lab.files', scope: {} }],
    ['white', 'scope/elevate', { featureSet: 'lab.files', scope: { label: '/project/a.ts', payload } }],
    ['black', 'scope/elevate', { featureSet: 'lab.files', scope: { label: '/project/secret.key' } }],
    ['outside', 'scope/elevate', { featureSet: 'lab.files', scope: { label: '/etc/passwd' } }],
    ['disabled', 'scope/elevate', { featureSet: 'lab.off', scope: { label: 'x' } }],
    ['unknown', 'scope/elevate', { featureSet: 'lab.nobody', scope: { label: 'x' } }],
    ['unscoped', 'scope/elevate', { featureSet: 'lab.push', scope: { label: 'x' } }],
  ]),
})

/** Allowed by the user once; then the configuration forbids it. */
const later = livePlay('elevate-later', {
  steps: [
    say('Call the tool test-tool.', 'first'),
    {
      do: 'select',
      enabled: wishes.enabled,
      disabled: wishes.disabled,
      scopes: { 'lab.files': { whitelist: ['/project/*'], blacklist: ['/srv/*'] } },
      as: 'select',
    },
    say('Call the tool test-tool again.', 'second'),
  ],
  wishes: { approve: true, model: [{ call: 'test-tool' }, 'Done.', { call: 'test-tool' }, 'Done.'] },
  during: async ({ ask, request: { log } }) => {
    const as = log.notes.has('answer before') ? 'after' : 'before'
    await ask(as, 'scope/elevate', { featureSet: 'lab.files', scope: { label: '/srv/data' } })
  },
})

const messages = [{ role: 'user', content: 'Summarize' }]
const thought = 'one two three four five six seven eight nine ten'

const inference = livePlay('infer', {
  wishes: { model: [{ call: 'test-tool' }, thought, thought, 'It is done.'] },
  during: asking([
    ['no-messages', 'inference/request', { featureSet: 'lab.think' }],
    ['no-set', 'inference/request', { messages }],
    ['off', 'inference/request', { featureSet: 'lab.off', messages }],
    ['plain', 'inference/request', { featureSet: 'lab.think', messages, preferences: { maxTokens: 50 } }],
    ['streamed', 'inference/request', { featureSet: 'lab.think', messages, stream: true }],
  ]),
})

/** The chunks of an inference, whichever way they came, each with its time. */
function chunksOf(seen: Observation, requestId: string): readonly Json[] {
  const told = seen.notices('inference/chunk').map(({ params, at }): Json => ({ ...params, at }))
  const inside = seen.requests('live/answer').flatMap(({ params, at }) => {
    const { deliveryId } = params
    return objectsIn(params, 'chunks').map((chunk): Json => ({ ...chunk, requestId: deliveryId, at }))
  })
  return [...told, ...inside].filter(chunk => chunk['requestId'] === requestId)
}

/** The messages that answer what was asked under this name. */
function answersTo(seen: Observation, as: string): readonly LoggedMessage[] {
  return seen.stateless
    ? seen.requests('live/answer').filter(({ params }) => params['deliveryId'] === as)
    : seen.answers.filter(({ id }) => id === as)
}

type HostCheck = ReturnType<typeof shownBy>

/** What was asked under this name is refused with this code. */
function refusedWith(code: number, ...names: readonly string[]): HostCheck {
  return shownBy(answers, seen => names.every(as => errorTo(seen, as)['code'] === code))
}

/** The result of what was asked under this name fits. */
function given(as: string, pattern: JsonPattern): HostCheck {
  return shownBy(answers, seen => fitsPattern(pattern, resultTo(seen, as)))
}

const finished = ['end_turn', 'max_tokens', 'stop_sequence']
const row = liveRows(called)

const pushing = [
  row('L9.2-1 L6.5-1', 'A push without a required member is -32602').by(pushes, {
    'The pushes': shownBy(answers, seen => {
      const odd = flawed.find(([name]) => errorTo(seen, name)['code'] !== -32602)
      return odd === undefined || `A push with ${odd[0]} must be answered -32602`
    }),
  }),
  row('L6.6-1 L9.3-2 L6.6-4', 'A push of a disabled set is -32001 and says whether it could be enabled').by(pushes, {
    'The code must be -32001': refusedWith(-32001, 'disabled'),
    'data must have featureSet and canEnable': shownBy(answers, seen =>
      fitsPattern({ data: { featureSet: 'lab.off', canEnable: is.boolean } }, errorTo(seen, 'disabled')),
    ),
  }),
  row('L6.6-2', 'A push of a set that nobody declared is -32003').by(pushes, {
    'The code should be -32003': should(refusedWith(-32003, 'unknown')),
  }),
  row('L9.3-1', 'A push is accepted, or refused with a reason').by(pushes, {
    'The result must say accepted': given('first', { accepted: is.boolean }),
    'A refusal says why': seen => {
      const { accepted, reason } = resultTo(seen, 'first')
      return accepted !== false || typeof reason === 'string'
    },
    'A refusal has no inferenceId': seen => {
      const { accepted, inferenceId } = resultTo(seen, 'first')
      return accepted === true || inferenceId === undefined
    },
  }),
  row('L9.4-1', 'A repeated push gets the first answer again').by(pushes, {
    'The answers': shownBy(answers, seen => {
      const [one, again] = [resultTo(seen, 'first'), resultTo(seen, 'repeated')]
      return sameJson(one, again) || `First ${JSON.stringify(one)}, then ${JSON.stringify(again)}`
    }),
  }),
  row('L12-1', 'The host reports its model').by(pushes, {
    'model/info must give id, vendor, contextWindow and capabilities': given('model', {
      ...{ id: is.string, vendor: is.string, contextWindow: is.number, capabilities: Array.isArray },
    }),
  }),
  row('L4.1-3 L4.1-2', 'A method in the wrong direction is -32601').by(pushes, {
    'context/beforeInference is for servers: -32601': refusedWith(-32601, 'wrong-way'),
  }),
  row('L4-1', 'Every request gets exactly one response').by(pushes, (seen, { expect }) => {
    for (const [name] of pushed) {
      expect(answerTo(seen, name) !== undefined, `${name} was not answered`)
      const { length } = answersTo(seen, name)
      expect(length === 1, `${name} was answered ${length} times`)
    }
  }),
]

const elevating = [
  row('L7.3-1', 'A scope without a label is -32602').by(elevations, {
    'The code must be -32602': refusedWith(-32602, 'none', 'unlabelled'),
  }),
  row('L7.5-1 L7.6-1 L7.2-1', 'A scope on the whitelist is approved, with its payload').by(elevations, {
    'A scope on the whitelist must be approved': given('white', { approved: true }),
    'The approval contains the payload': shownBy(answers, seen => sameJson(resultTo(seen, 'white')['payload'], payload)),
  }),
  row('L7.6-1', 'A scope on the blacklist is denied with a reason, also if it is on the whitelist').by(elevations, {
    'A scope on the blacklist must be denied, with a reason': given('black', { approved: false, reason: is.string }),
  }),
  row('L7.6-3', 'Beyond the lists nothing is approved automatically').by(elevations, {
    'The scopes': shownBy(answers, seen => {
      const odd = ['outside', 'unscoped'].find(name => resultTo(seen, name)['approved'] === true)
      return odd === undefined || `${odd} was approved although nobody was asked`
    }),
    'Of a disabled set it is -32001': refusedWith(-32001, 'disabled'),
    'Of an unknown set it is -32003': refusedWith(-32003, 'unknown'),
  }),
  row('L7.6-2', 'An approval does not outlive a list that forbids the scope').by(later, {
    'the host has nobody who approves': orSkip(given('before', { approved: true })),
    'the host did not call the tool again': orSkip(seen => answerTo(seen, 'after') !== undefined),
    'A scope that is now on the blacklist was approved': given('after', { approved: false }),
  }),
]

const inferring = [
  row('L11.2-1 L6.5-1 L6.6-1', 'An inference needs a set and messages').by(inference, {
    'no-messages must be -32602': refusedWith(-32602, 'no-messages'),
    'no-set must be -32602': refusedWith(-32602, 'no-set'),
    'An inference of a disabled set must be -32001': refusedWith(-32001, 'off'),
  }),
  row('L11.3-1 L11.3-2', 'An inference is answered with model, finish reason and usage').by(inference, {
    'content and model must be strings': given('plain', { content: is.string, model: is.string }),
    [`finishReason is one of ${finished.join(', ')}`]: given('plain', { finishReason: is.oneOf(...finished) }),
    'usage must have inputTokens and outputTokens': given('plain', {
      usage: { inputTokens: Number.isInteger, outputTokens: Number.isInteger },
    }),
  }),
  row('L11.4-1', 'A streamed inference comes in chunks without gaps, all before its result').by(inference, {
    'the host does not stream': orSkip(seen => chunksOf(seen, 'streamed').length > 0),
    'index counts from 0 without gaps': seen => chunksOf(seen, 'streamed').every(({ index }, at) => index === at),
    'The chunks are not the content': seen => {
      const deltas = chunksOf(seen, 'streamed').map(({ delta }) => delta)
      return deltas.join('') === resultTo(seen, 'streamed')['content']
    },
    'A chunk came after the result': seen => {
      const end = answersTo(seen, 'streamed').find(({ frame, params }) => 'result' in (seen.stateless ? params : (frame ?? {})))
      return chunksOf(seen, 'streamed').every(({ at }) => Number(at) <= (end?.at ?? 0))
    },
  }),
  row('L11.4-2', 'Without stream there are no chunks').by(inference, {
    'Chunks came that were not requested': seen => chunksOf(seen, 'plain').length === 0,
  }),
]

/** What a live server asks of its host. */
export const requestScenarios = [...pushing, ...elevating, ...inferring]
