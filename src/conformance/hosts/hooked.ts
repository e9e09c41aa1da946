/** Hooks around an inference (§10) and state that travels with calls (§8). */
import { isRecord } from '../../jsonrpc/message.ts'
import { type Step, said as toolResult } from '../clients/play.ts'
import type { ClientScenario } from '../clients/scenario.ts'
import type { Seen } from '../clients/seen.ts'
import { paramsOf, type Said } from '../clients/stage/book.ts'
import { silence } from '../clients/stage/script.ts'
import { announced, hosting, livePlay, tool } from './live-play.ts'
import { hello } from './opening.ts'

const BEFORE = 'context/beforeInference'
const AFTER = 'context/afterInference'
const SAY: readonly Step[] = [{ do: 'say', text: 'Hello', as: 'say' }]
const greets = { steps: SAY, wishes: { model: ['Hello.'] } }

const told = livePlay('after-told', {
  ...greets,
  mcpl: { ...announced, contextHooks: { beforeInference: true, afterInference: { blocking: false } } },
})
const unhooked = livePlay('no-hooks', { ...greets, mcpl: { ...announced, contextHooks: {} } })
const modified = livePlay('modified', {
  ...greets,
  on: () => ({ [AFTER]: () => ({ featureSet: 'lab.hooks', modifiedResponse: 'Changed.' }) }),
})
const foreign = livePlay('modified-by-disabled', {
  ...greets,
  on: () => ({ [AFTER]: () => ({ featureSet: 'lab.off', modifiedResponse: 'Stolen.' }) }),
})
const mute = livePlay('mute-hook', { ...greets, ms: 20_000, on: () => ({ [BEFORE]: () => silence }) })
const turns = livePlay('turns', {
  steps: [
    { do: 'say', text: 'One', conversation: 'c', as: 'one' },
    { do: 'say', text: 'Two', conversation: 'c', as: 'two' },
  ],
  wishes: { model: ['First.', 'Second.'] },
})

/** The hook asks for an inference while the host waits for it. */
const nested = livePlay('nested', {
  ...greets,
  wishes: { model: ['Hello.', 'Nested.', 'Nested.'] },
  on: stage => ({
    [BEFORE]: async call => {
      if (stage.revision !== '2026-07-28' && !call.book.notes.has('nested')) {
        call.book.notes.set('nested', true)
        const asked = { featureSet: 'lab.think', messages: [{ role: 'user', content: 'Think' }] }
        // Said beside the answer to the hook: nobody may wait for it there.
        void stage.ask('inference/request', asked, 'nested')
      }
      return { featureSet: 'lab.hooks', contextInjections: [] }
    },
  }),
})

function hooks(seen: Seen, method: string): readonly Said[] {
  return seen.fromClient.filter(({ frame }) => frame?.['method'] === method)
}

const isHooked = (seen: Seen): string | undefined =>
  hooks(seen, BEFORE).length > 0 ? undefined : 'the host ran no inference with hooks'

// ── state ───────────────────────────────────────────────────────────────────────────────────────────────────────────

const say = (as: string): Step => ({ do: 'say', text: 'Call the tool test-tool.', conversation: 'state', as })
const calling = (times: number) => ({
  model: Array.from({ length: times }, () => [{ call: 'test-tool' }, 'Done.'] as const).flat(),
})

/** Each call adds one: whole state first, patches after it. */
const hosted = livePlay('host-state', {
  steps: [say('1'), say('2'), say('3'), { do: 'rollback', set: 'lab.notes', checkpoint: 'c-1', as: 'rollback' }, say('4')],
  wishes: calling(4),
  tools: [tool('test-tool', 'lab.notes')],
  during: async ({ call }) => {
    const n = call.book.of('tools/call').filter(said => paramsOf(said)['name'] === 'test-tool').length
    if (n === 1) return toolResult('one', { state: { checkpoint: 'c-1', parent: null, data: { notes: ['1'] } } })
    const parent = n === 4 ? 'c-1' : `c-${n - 1}`
    const state = { checkpoint: `c-${n}`, parent, patch: [{ op: 'add', path: '/notes/-', value: String(n) }] }
    return toolResult('more', { state })
  },
  on: () => ({ 'state/rollback': ({ params }) => ({ checkpoint: params['checkpoint'], success: true }) }),
})

const kept = livePlay('server-state', {
  steps: [say('1'), say('2'), { do: 'rollback', set: 'lab.count', checkpoint: 's-1', as: 'rollback' }, say('3')],
  wishes: calling(3),
  tools: [tool('test-tool', 'lab.count')],
  during: async ({ call }) => {
    const n = call.book.of('tools/call').filter(said => paramsOf(said)['name'] === 'test-tool').length
    return toolResult('counted', { state: { checkpoint: `s-${n}`, parent: n === 1 ? null : `s-${n - 1}` } })
  },
  on: () => ({ 'state/rollback': ({ params }) => ({ checkpoint: params['checkpoint'], success: false, reason: 'pruned' }) }),
})

function notesIn(call: Said | undefined): unknown {
  const { state } = paramsOf(call)
  return isRecord(state) ? state['notes'] : undefined
}

const counted = (times: number) => (seen: Seen) =>
  seen.calls('test-tool').length >= times ? undefined : `the host did not call test-tool ${times} times`

export const hooked: readonly ClientScenario[] = [
  hosting('L10.1-1', 'A hook hears of inference, conversation, turn, words and model', hello, {
    proves: ['L10.1-1', 'L10.1-2', 'L6.5-2'],
    needs: isHooked,
    check: (seen, { expect }) => {
      const [hook] = hooks(seen, BEFORE)
      const { inferenceId, conversationId, turnIndex, userMessage, model, featureSet } = paramsOf(hook)
      expect(
        typeof inferenceId === 'string' && typeof conversationId === 'string',
        'inferenceId and conversationId must be texts',
        [hook],
      )
      expect(Number.isInteger(turnIndex) && Number(turnIndex) >= 0, 'turnIndex must be an integer from 0', [hook])
      expect(userMessage === null || typeof userMessage === 'string', 'userMessage must be a text or null', [hook])
      const whole =
        isRecord(model) &&
        typeof model['id'] === 'string' &&
        typeof model['vendor'] === 'string' &&
        typeof model['contextWindow'] === 'number' &&
        Array.isArray(model['capabilities'])
      expect(whole, 'model must have id, vendor, contextWindow and capabilities', [hook])
      expect(featureSet === undefined, 'A hook names no featureSet: its result does', [hook])
    },
  }),
  hosting('L10.5-1', 'What follows an inference is told of the same one, with its words and its cost', hello, {
    proves: ['L10.5-1'],
    needs: isHooked,
    check: (seen, { expect, fail }) => {
      const [before] = hooks(seen, BEFORE)
      const [after] = hooks(seen, AFTER)
      if (after === undefined) return fail('The blocking hook after the inference was not called', seen.fromClient.slice(-3))
      expect(after.frame?.['id'] !== undefined, 'A blocking hook is a request', [after])
      const { inferenceId, assistantMessage, usage } = paramsOf(after)
      expect(inferenceId === paramsOf(before)['inferenceId'], 'The two hooks are of different inferences', [before, after])
      expect(typeof assistantMessage === 'string', 'assistantMessage must be a text', [after])
      const counted = isRecord(usage) && Number.isInteger(usage['inputTokens']) && Number.isInteger(usage['outputTokens'])
      expect(counted, 'usage must have inputTokens and outputTokens', [after])
    },
  }),
  hosting('L10.5-1-told', 'A hook that does not block is told by a notification', told, {
    proves: ['L10.5-1'],
    needs: isHooked,
    check: (seen, { expect, fail }) => {
      const [after] = hooks(seen, AFTER)
      if (after === undefined) return fail('The hook after the inference was not told', seen.fromClient.slice(-3))
      // Where servers send nothing unasked, hosts have no notifications either.
      if (!seen.stateless) expect(after.frame?.['id'] === undefined, 'A hook that does not block is a notification', [after])
    },
  }),
  hosting('L5.1-2', 'Hooks that were not announced are not called', unhooked, {
    proves: ['L5.1-2'],
    check: (seen, { expect }) => {
      const odd = seen.fromClient.filter(({ frame }) => String(frame?.['method']).startsWith('context/'))
      expect(odd.length === 0, 'The server announced no hooks', odd.slice(0, 1))
    },
  }),
  hosting('L10.1-1-turns', 'A conversation keeps its name, and its turns count', turns, {
    proves: ['L10.1-1'],
    needs: seen => (hooks(seen, BEFORE).length > 1 ? undefined : 'the host did not run two turns'),
    check: (seen, { expect }) => {
      const [one, two] = hooks(seen, BEFORE)
      expect(
        paramsOf(one)['conversationId'] === paramsOf(two)['conversationId'],
        'conversationId changed within a conversation',
        [one, two],
      )
      expect(paramsOf(one)['turnIndex'] === 0 && paramsOf(two)['turnIndex'] === 1, 'turnIndex counts the turns from 0', [
        one,
        two,
      ])
      expect(paramsOf(one)['inferenceId'] !== paramsOf(two)['inferenceId'], 'Two inferences have one inferenceId', [one, two])
    },
  }),
  hosting('L10.5-2', 'What a blocking hook makes of an answer is what the user sees', modified, {
    proves: ['L10.5-2'],
    needs: isHooked,
    check: (seen, { expect, skip }) => {
      const text = seen.reported.get('say')?.text
      if (text === undefined) return skip('the host does not report what its user saw')
      expect(text === 'Changed.', `The user saw "${text}"`)
    },
  }),
  hosting('L6.6-3', 'What a hook says in the name of a disabled set does not count', foreign, {
    proves: ['L6.6-3'],
    needs: isHooked,
    check: (seen, { expect, skip }) => {
      const text = seen.reported.get('say')?.text
      if (text === undefined) return skip('the host does not report what its user saw')
      expect(text !== 'Stolen.', 'A disabled set changed what the user saw')
    },
  }),
  hosting('L10.6-1', 'A hook that does not answer is not waited for beyond its time', mute, {
    proves: ['L10.6-1'],
    needs: isHooked,
    check: (seen, { expect }) => {
      expect(
        !seen.end.timedOut && hooks(seen, AFTER).length > 0,
        'The host still waits for the hook',
        hooks(seen, BEFORE).slice(0, 1),
      )
    },
  }),
  hosting('L10.7-2', 'An inference that a hook wants has no hooks of its own', nested, {
    proves: ['L10.7-2', 'L10.7-1'],
    needs: seen => (seen.stateless ? 'a server of this wire asks by its stream' : isHooked(seen)),
    check: (seen, { expect }) => {
      const ids = new Set(hooks(seen, BEFORE).map(hook => paramsOf(hook)['inferenceId']))
      expect(ids.size === 1, `Hooks ran for ${ids.size} inferences; the user wanted one`, hooks(seen, BEFORE).slice(0, 2))
    },
  }),
  hosting('L8.4-1', 'Calls carry the state of the head, and the first one none', hosted, {
    proves: ['L8.4-1', 'L8.4-2', 'L8.3-1', 'L8.3-2'],
    needs: counted(3),
    check: (seen, { expect }) => {
      const [one, two, three] = seen.calls('test-tool')
      expect(!('state' in paramsOf(one)), 'There is no state before the first call', [one])
      expect(JSON.stringify(notesIn(two)) === '["1"]', 'The second call must carry the state of the first result', [two])
      expect(JSON.stringify(notesIn(three)) === '["1","2"]', 'The third call must carry what the patch made', [three])
      for (const call of [two, three])
        expect(!('checkpoint' in paramsOf(call)), 'Where the host keeps the state, no checkpoint is sent', [call])
    },
  }),
  hosting('L8.6-2', 'After a rollback calls carry the state of then', hosted, {
    proves: ['L8.6-2', 'L8.5-1', 'L8.2-2', 'L8.3-3'],
    needs: seen => (seen.requests('state/rollback').length > 0 ? counted(4)(seen) : 'the host rolled nothing back'),
    check: (seen, { expect }) => {
      const [rollback] = seen.requests('state/rollback')
      const { featureSet, checkpoint } = paramsOf(rollback)
      expect(featureSet === 'lab.notes' && checkpoint === 'c-1', 'state/rollback must name set and checkpoint', [rollback])
      const four = seen.calls('test-tool')[3]
      expect(JSON.stringify(notesIn(four)) === '["1"]', 'The call after the rollback must carry the old state', [four])
    },
  }),
  hosting('L8.7-1', 'Where the server keeps the state, calls carry the checkpoint and no state', kept, {
    proves: ['L8.7-1', 'L8.2-1'],
    needs: counted(2),
    check: (seen, { expect }) => {
      const [one, two] = seen.calls('test-tool')
      expect(!('checkpoint' in paramsOf(one)), 'There is no checkpoint before the first call', [one])
      expect(
        paramsOf(two)['checkpoint'] === 's-1' && !('state' in paramsOf(two)),
        'The second call must carry checkpoint s-1 and no state',
        [two],
      )
    },
  }),
  hosting('L8.6-1', 'A rollback that the server refuses moves nothing', kept, {
    proves: ['L8.6-1'],
    needs: seen => (seen.requests('state/rollback').length > 0 ? counted(3)(seen) : 'the host rolled nothing back'),
    check: (seen, { expect }) => {
      const three = seen.calls('test-tool')[2]
      expect(paramsOf(three)['checkpoint'] === 's-2', 'The head moved though the server refused', [three])
    },
  }),
]
