/** What a live server asks of its host: pushes, scopes, inference, the model (§7, §9, §11, §12). */
import { isRecord } from '../../jsonrpc/message.ts'
import type { ClientScenario } from '../clients/scenario.ts'
import type { Seen } from '../clients/seen.ts'
import { type Frame, paramsOf } from '../clients/stage/book.ts'
import { answerTo, called, errorTo, hosting, livePlay, resultTo, type Talk, wishes } from './live-play.ts'
import { event } from './opening.ts'

const FLAWS: readonly (readonly [name: string, params: Frame])[] = [
  ['no-event-id', event('lab.push', 'x', { eventId: undefined })],
  ['no-timestamp', event('lab.push', 'x', { timestamp: undefined })],
  ['no-payload', event('lab.push', 'x', { payload: undefined })],
  ['no-content', event('lab.push', 'x', { payload: {} })],
  ['no-set', event('lab.push', 'x', { featureSet: undefined })],
]

const pushes = livePlay('push', {
  during: async ({ ask }: Talk) => {
    for (const [name, params] of FLAWS) await ask(name, 'push/event', params)
    await ask('disabled', 'push/event', event('lab.off', 'e-off'))
    await ask('unknown', 'push/event', event('lab.nobody', 'e-nobody'))
    await ask('first', 'push/event', event('lab.push', 'e-1'))
    await ask('repeated', 'push/event', event('lab.push', 'e-1'))
    await ask('model', 'model/info', {})
    await ask('wrong-way', 'context/beforeInference', { inferenceId: 'i', conversationId: 'c', turnIndex: 0, userMessage: null })
    return undefined
  },
})

const scope = (label: unknown, payload?: Frame): Frame => ({ label, ...(payload === undefined ? {} : { payload }) })
const PAYLOAD = { path: '/project/a.ts', mode: 'append' }

const elevations = livePlay('elevate', {
  during: async ({ ask }: Talk) => {
    const elevate = (as: string, featureSet: string, asked: Frame | undefined): Promise<unknown> =>
      ask(as, 'scope/elevate', { featureSet, ...(asked === undefined ? {} : { scope: asked }) })
    await elevate('none', 'lab.files', undefined)
    await elevate('unlabelled', 'lab.files', {})
    await elevate('white', 'lab.files', scope('/project/a.ts', PAYLOAD))
    await elevate('black', 'lab.files', scope('/project/secret.key'))
    await elevate('outside', 'lab.files', scope('/etc/passwd'))
    await elevate('disabled', 'lab.off', scope('x'))
    await elevate('unknown', 'lab.nobody', scope('x'))
    await elevate('unscoped', 'lab.push', scope('x'))
    return undefined
  },
})

/** Allowed by the user once; then the configuration forbids it. */
const later = livePlay('elevate-later', {
  steps: [
    { do: 'say', text: 'Call the tool test-tool.', as: 'first' },
    {
      do: 'select',
      enabled: wishes.enabled,
      disabled: wishes.disabled,
      scopes: { 'lab.files': { whitelist: ['/project/*'], blacklist: ['/srv/*'] } },
      as: 'select',
    },
    { do: 'say', text: 'Call the tool test-tool again.', as: 'second' },
  ],
  wishes: { approve: true, model: [{ call: 'test-tool' }, 'Done.', { call: 'test-tool' }, 'Done.'] },
  during: async ({ ask, call }) => {
    const asked = call.book.notes.has('answer before') ? 'after' : 'before'
    await ask(asked, 'scope/elevate', { featureSet: 'lab.files', scope: scope('/srv/data') })
    return undefined
  },
})

const messages = [{ role: 'user', content: 'Summarize' }]
const THOUGHT = 'one two three four five six seven eight nine ten'

const inference = livePlay('infer', {
  wishes: { model: [{ call: 'test-tool' }, THOUGHT, THOUGHT, 'It is done.'] },
  during: async ({ ask }: Talk) => {
    await ask('no-messages', 'inference/request', { featureSet: 'lab.think' })
    await ask('no-set', 'inference/request', { messages })
    await ask('off', 'inference/request', { featureSet: 'lab.off', messages })
    await ask('plain', 'inference/request', { featureSet: 'lab.think', messages, preferences: { maxTokens: 50 } })
    await ask('streamed', 'inference/request', { featureSet: 'lab.think', messages, stream: true })
    return undefined
  },
})

interface Chunk {
  readonly requestId: unknown
  readonly index: unknown
  readonly delta: unknown
  readonly at: number
}

/** The chunks of an inference, whichever way they came. */
function chunksOf(seen: Seen, requestId: string): readonly Chunk[] {
  const told = seen.notices('inference/chunk').map(said => ({ ...(paramsOf(said) as unknown as Chunk), at: said.at }))
  const inside = seen.requests('live/answer').flatMap(said => {
    const { deliveryId, chunks } = paramsOf(said)
    const list = Array.isArray(chunks) ? (chunks as Omit<Chunk, 'requestId' | 'at'>[]) : []
    return list.map(chunk => ({ ...chunk, requestId: deliveryId, at: said.at }))
  })
  return [...told, ...inside].filter(chunk => chunk.requestId === requestId)
}

const FINISHED = ['end_turn', 'max_tokens', 'stop_sequence']

export const asked: readonly ClientScenario[] = [
  hosting('L9.2-1', 'A push without what it must have is -32602', pushes, {
    proves: ['L9.2-1', 'L6.5-1'],
    needs: called,
    check: (seen, { expect }) => {
      for (const [name] of FLAWS)
        expect(errorTo(seen, name)['code'] === -32602, `A push with ${name} must be answered -32602`, seen.answers.slice(0, 2))
    },
  }),
  hosting('L6.6-1', 'A push of a disabled set is -32001 and says whether it could be enabled', pushes, {
    proves: ['L6.6-1', 'L9.3-2', 'L6.6-4'],
    needs: called,
    check: (seen, { expect }) => {
      const { code, data } = errorTo(seen, 'disabled')
      expect(code === -32001, 'The code must be -32001', seen.answers)
      expect(
        isRecord(data) && data['featureSet'] === 'lab.off' && typeof data['canEnable'] === 'boolean',
        'data must have featureSet and canEnable',
        seen.answers,
      )
    },
  }),
  hosting('L6.6-2', 'A push of a set that nobody declared is -32003', pushes, {
    proves: ['L6.6-2'],
    needs: called,
    check: (seen, { warn }) => {
      if (errorTo(seen, 'unknown')['code'] !== -32003) warn('The code should be -32003')
    },
  }),
  hosting('L9.3-1', 'A push is accepted, or refused with a reason', pushes, {
    proves: ['L9.3-1'],
    needs: called,
    check: (seen, { expect }) => {
      const { accepted, inferenceId, reason } = resultTo(seen, 'first')
      expect(typeof accepted === 'boolean', 'The result must say accepted', seen.answers)
      expect(accepted !== false || typeof reason === 'string', 'A refusal says why', seen.answers)
      expect(accepted === true || inferenceId === undefined, 'What is refused has no inferenceId', seen.answers)
    },
  }),
  hosting('L9.4-1', 'A push that comes again gets the first answer again', pushes, {
    proves: ['L9.4-1'],
    needs: called,
    check: (seen, { expect }) => {
      const [first, again] = [resultTo(seen, 'first'), resultTo(seen, 'repeated')]
      expect(
        JSON.stringify(first) === JSON.stringify(again),
        `First ${JSON.stringify(first)}, then ${JSON.stringify(again)}`,
        seen.answers.slice(-4),
      )
    },
  }),
  hosting('L12-1', 'The host says which model it has', pushes, {
    proves: ['L12-1'],
    needs: called,
    check: (seen, { expect }) => {
      const { id, vendor, contextWindow, capabilities } = resultTo(seen, 'model')
      const whole =
        typeof id === 'string' && typeof vendor === 'string' && typeof contextWindow === 'number' && Array.isArray(capabilities)
      expect(whole, 'model/info must give id, vendor, contextWindow and capabilities', seen.answers.slice(-2))
    },
  }),
  hosting('L4.1-3', 'A method sent the wrong way is -32601', pushes, {
    proves: ['L4.1-3', 'L4.1-2'],
    needs: called,
    check: (seen, { expect }) => {
      expect(
        errorTo(seen, 'wrong-way')['code'] === -32601,
        'context/beforeInference is for servers: -32601',
        seen.answers.slice(-1),
      )
    },
  }),
  hosting('L4-1', 'Every request gets exactly one response', pushes, {
    proves: ['L4-1'],
    needs: called,
    check: (seen, { expect }) => {
      const names = [...FLAWS.map(([name]) => name), 'disabled', 'unknown', 'first', 'repeated', 'model', 'wrong-way']
      for (const name of names) {
        expect(answerTo(seen, name) !== undefined, `${name} was not answered`)
        const times = seen.stateless
          ? seen.requests('live/answer').filter(said => paramsOf(said)['deliveryId'] === name).length
          : seen.answers.filter(({ frame }) => frame?.['id'] === name).length
        expect(times === 1, `${name} was answered ${times} times`)
      }
    },
  }),
  hosting('L7.3-1', 'A scope without a label is -32602', elevations, {
    proves: ['L7.3-1'],
    needs: called,
    check: (seen, { expect }) => {
      for (const name of ['none', 'unlabelled'])
        expect(errorTo(seen, name)['code'] === -32602, 'The code must be -32602', seen.answers.slice(0, 2))
    },
  }),
  hosting('L7.5-1', 'What the list allows is approved, with its payload', elevations, {
    proves: ['L7.5-1', 'L7.6-1', 'L7.2-1'],
    needs: called,
    check: (seen, { expect }) => {
      const { approved, payload } = resultTo(seen, 'white')
      expect(approved === true, 'A scope on the whitelist must be approved', seen.answers.slice(2, 3))
      expect(
        JSON.stringify(payload) === JSON.stringify(PAYLOAD),
        'The payload comes back with the approval',
        seen.answers.slice(2, 3),
      )
    },
  }),
  hosting('L7.6-1', 'What the list forbids is denied with a reason, also where another list allows it', elevations, {
    proves: ['L7.6-1'],
    needs: called,
    check: (seen, { expect }) => {
      const { approved, reason } = resultTo(seen, 'black')
      expect(
        approved === false && typeof reason === 'string',
        'A scope on the blacklist must be denied, with a reason',
        seen.answers.slice(3, 4),
      )
    },
  }),
  hosting('L7.6-3', 'Beyond the lists nothing is approved by itself', elevations, {
    proves: ['L7.6-3'],
    needs: called,
    check: (seen, { expect }) => {
      for (const name of ['outside', 'unscoped'])
        expect(resultTo(seen, name)['approved'] !== true, `${name} was approved though nobody was asked`, seen.answers)
      expect(errorTo(seen, 'disabled')['code'] === -32001, 'Of a disabled set it is -32001', seen.answers)
      expect(errorTo(seen, 'unknown')['code'] === -32003, 'Of an unknown set it is -32003', seen.answers)
    },
  }),
  hosting('L7.6-2', 'An approval does not outlive a list that forbids the scope', later, {
    proves: ['L7.6-2'],
    needs: called,
    check: (seen, { expect, skip }) => {
      if (resultTo(seen, 'before')['approved'] !== true) skip('the host has nobody who approves')
      if (answerTo(seen, 'after') === undefined) skip('the host did not call the tool again')
      expect(resultTo(seen, 'after')['approved'] === false, 'What the list forbids by now was approved', seen.answers.slice(-1))
    },
  }),
  hosting('L11.2-1', 'An inference needs a set and messages', inference, {
    proves: ['L11.2-1', 'L6.5-1', 'L6.6-1'],
    needs: called,
    check: (seen, { expect }) => {
      for (const name of ['no-messages', 'no-set'])
        expect(errorTo(seen, name)['code'] === -32602, `${name} must be -32602`, seen.answers.slice(0, 2))
      expect(errorTo(seen, 'off')['code'] === -32001, 'An inference of a disabled set must be -32001', seen.answers.slice(2, 3))
    },
  }),
  hosting('L11.3-1', 'An inference is answered with what ran, why it ended and what it cost', inference, {
    proves: ['L11.3-1', 'L11.3-2'],
    needs: called,
    check: (seen, { expect }) => {
      const { content, model, finishReason, usage } = resultTo(seen, 'plain')
      expect(typeof content === 'string' && typeof model === 'string', 'content and model must be texts', seen.answers)
      expect(FINISHED.includes(String(finishReason)), `finishReason is one of ${FINISHED.join(', ')}`, seen.answers)
      const counted = isRecord(usage) && Number.isInteger(usage['inputTokens']) && Number.isInteger(usage['outputTokens'])
      expect(counted, 'usage must have inputTokens and outputTokens', seen.answers)
    },
  }),
  hosting('L11.4-1', 'A streamed inference comes in chunks without gaps, all before its result', inference, {
    proves: ['L11.4-1'],
    needs: called,
    check: (seen, { expect, skip }) => {
      const chunks = chunksOf(seen, 'streamed')
      if (chunks.length === 0) skip('the host does not stream')
      expect(
        chunks.every(({ index }, at) => index === at),
        'index counts from 0 without gaps',
        seen.fromClient.slice(-3),
      )
      const { content } = resultTo(seen, 'streamed')
      expect(chunks.map(({ delta }) => delta).join('') === content, 'The chunks are not the content')
      const end =
        (seen.stateless
          ? seen.requests('live/answer').find(said => paramsOf(said)['deliveryId'] === 'streamed' && 'result' in paramsOf(said))
          : seen.answer('streamed')
        )?.at ?? 0
      expect(
        chunks.every(({ at }) => at <= end),
        'A chunk came after the result',
      )
    },
  }),
  hosting('L11.4-2', 'Without stream there are no chunks', inference, {
    proves: ['L11.4-2'],
    needs: called,
    check: (seen, { expect }) => {
      expect(
        chunksOf(seen, 'plain').length === 0,
        'Chunks came that nobody asked for',
        seen.notices('inference/chunk').slice(0, 1),
      )
    },
  }),
]
