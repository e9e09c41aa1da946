/** Hooks around an inference (§10) and state that travels with calls (§8). */
import { calls, each, first, none, params, requires, type Select, sent, shownBy } from '../clients/checks.ts'
import type { ClientNeed } from '../clients/define.ts'
import type { LoggedMessage, Observation } from '../clients/log.ts'
import { type Step, testTool, textResult } from '../clients/play.ts'
import { type ClientRequest, noAnswer } from '../clients/script.ts'
import { is, objectIn, orSkip, sameJson } from '../expectations.ts'
import type { Json } from '../scenario.ts'
import { announced, liveId, livePlay, liveRows, say } from './live-play.ts'
import { hello } from './opening.ts'

const BEFORE = 'context/beforeInference'
const AFTER = 'context/afterInference'
const greets = { steps: [say('Hello')], wishes: { model: ['Hello.'] } }

const told = livePlay('after-told', {
  ...greets,
  mcpl: { ...announced, contextHooks: { beforeInference: true, afterInference: { blocking: false } } },
})
const unhooked = livePlay('no-hooks', { ...greets, mcpl: { ...announced, contextHooks: {} } })
const modified = livePlay('modified', {
  ...greets,
  on: () => ({ [AFTER]: { featureSet: 'lab.hooks', modifiedResponse: 'Changed.' } }),
})
const foreign = livePlay('modified-by-disabled', {
  ...greets,
  on: () => ({ [AFTER]: { featureSet: 'lab.off', modifiedResponse: 'Stolen.' } }),
})
const mute = livePlay('mute-hook', { ...greets, ms: 20_000, on: () => ({ [BEFORE]: () => noAnswer }) })
const turns = livePlay('turns', {
  steps: [say('One', 'one', 'c'), say('Two', 'two', 'c')],
  wishes: { model: ['First.', 'Second.'] },
})

/** The hook asks for an inference while the host waits for it. */
const nested = livePlay('nested', {
  ...greets,
  wishes: { model: ['Hello.', 'Nested.', 'Nested.'] },
  on: server => ({
    [BEFORE]: ({ log }) => {
      if (server.revision !== '2026-07-28' && !log.notes.has('nested')) {
        log.notes.set('nested', true)
        const asked = { featureSet: 'lab.think', messages: [{ role: 'user', content: 'Think' }] }
        // Said beside the answer to the hook: nobody may wait for it there.
        void server.ask('inference/request', asked, 'nested')
      }
      return { featureSet: 'lab.hooks', contextInjections: [] }
    },
  }),
})

/** Hooks are requests or notifications. */
function hooks(method: string): Exclude<Select, string> {
  return seen => seen.fromClient.filter(message => message.method === method)
}

const before = hooks(BEFORE)
const after = hooks(AFTER)
const isHooked = sent(before, 'the host ran no inference with hooks')

/** What the parameters of the first two hooks must be. */
function bothTurns(check: (one: Json, two: Json) => boolean): ReturnType<typeof shownBy> {
  return shownBy(before, seen => {
    const [one, two] = before(seen)
    return check(one?.params ?? {}, two?.params ?? {})
  })
}

function textSeen(seen: Observation): string | undefined {
  return seen.reported.get('say')?.text
}

const reportsText = { 'the host does not report what its user saw': orSkip((seen: Observation) => textSeen(seen) !== undefined) }
const model = { id: is.string, vendor: is.string, contextWindow: is.number, capabilities: Array.isArray }
const usage = { inputTokens: Number.isInteger, outputTokens: Number.isInteger }
const row = liveRows(isHooked)
const anyRow = liveRows()

const hooked = [
  row('L10.1-1 L10.1-2 L6.5-2', 'A hook gets the inference, the conversation, the turn, the messages and the model').by(hello, {
    'inferenceId and conversationId must be strings': first(
      before,
      params({ inferenceId: is.string, conversationId: is.string }),
    ),
    'turnIndex must be an integer from 0': first(before, params({ turnIndex: isCount })),
    'userMessage must be a string or null': first(before, params({ userMessage: (it: unknown) => it === null || is.string(it) })),
    'model must have id, vendor, contextWindow and capabilities': first(before, params({ model })),
    'A hook request has no featureSet: its result has one': first(before, params({ featureSet: is.absent })),
  }),
  row('L10.5-1', 'The hook after an inference gets the same inference, with its answer and its cost').by(hello, {
    'The blocking hook after the inference was not called': seen => after(seen).length > 0,
    'A blocking hook is a request': first(after, ({ id }) => id !== undefined),
    'The two hooks are of different inferences': first(
      after,
      ({ params }, seen) => params['inferenceId'] === before(seen)[0]?.params['inferenceId'],
    ),
    'assistantMessage must be a string': first(after, params({ assistantMessage: is.string })),
    'usage must have inputTokens and outputTokens': first(after, params({ usage })),
  }),
  row('L10.5-1-told', 'A hook that does not block gets a notification').by(told, {
    'The hook after the inference got no notification': seen => after(seen).length > 0,
    // Where servers send nothing unasked, hosts have no notifications either.
    'A hook that does not block is a notification': first(after, ({ id }, seen) => seen.stateless || id === undefined),
  }),
  anyRow('L5.1-2', 'Hooks that were not announced are not called').by(unhooked, {
    'The server announced no hooks': none(
      seen => seen.fromClient,
      ({ method }) => String(method).startsWith('context/'),
    ),
  }),
  anyRow('L10.1-1-turns', 'A conversation keeps its id, and its turns are counted').by(
    [turns, requires(seen => before(seen).length > 1, 'the host did not run two turns')],
    {
      'conversationId changed within a conversation': bothTurns((one, two) => one['conversationId'] === two['conversationId']),
      'turnIndex counts the turns from 0': bothTurns((one, two) => one['turnIndex'] === 0 && two['turnIndex'] === 1),
      'Two inferences have the same inferenceId': bothTurns((one, two) => one['inferenceId'] !== two['inferenceId']),
    },
  ),
  row('L10.5-2', 'The user sees the answer as a blocking hook changed it').by(modified, {
    ...reportsText,
    'The text': seen => textSeen(seen) === 'Changed.' || `The user saw "${textSeen(seen)}"`,
  }),
  row('L6.6-3', 'A hook result in the name of a disabled set has no effect').by(foreign, {
    ...reportsText,
    'A disabled set changed what the user saw': seen => textSeen(seen) !== 'Stolen.',
  }),
  row('L10.6-1', 'The host does not wait for a hook longer than its timeout').by(mute, {
    'The host still waits for the hook': shownBy(before, seen => !seen.end.timedOut && after(seen).length > 0),
  }),
  anyRow('L10.7-2 L10.7-1', 'An inference that a hook requests has no hooks').by(
    [nested, requires(seen => !seen.stateless, 'a server of this wire asks by its stream'), isHooked],
    {
      'The hooks': shownBy(before, seen => {
        const { size } = new Set(before(seen).map(({ params }) => params['inferenceId']))
        return size === 1 || `Hooks ran for ${size} inferences; the user wanted one`
      }),
    },
  ),
]

function isCount(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 0
}

// ── state ───────────────────────────────────────────────────────────────────────────────────────────────────────────

const again = (as: string): Step => say('Call the tool test-tool.', as, 'state')
const calling = (count: number) => ({
  model: Array.from({ length: count }, () => [{ call: 'test-tool' }, 'Done.'] as const).flat(),
})

function toolOf(featureSet: string): Json {
  return { ...testTool, featureSet, _meta: { [liveId]: { featureSet } } }
}

/** The number of the call that is answered. */
function countOf({ log }: ClientRequest): number {
  return log.of('tools/call').filter(({ params }) => params['name'] === 'test-tool').length
}

/** Each call adds one: whole state first, patches after it. */
const byHost = livePlay('host-state', {
  steps: [
    again('1'),
    again('2'),
    again('3'),
    { do: 'rollback', set: 'lab.notes', checkpoint: 'c-1', as: 'rollback' },
    again('4'),
  ],
  wishes: calling(4),
  tools: [toolOf('lab.notes')],
  during: ({ request }) => {
    const n = countOf(request)
    if (n === 1) return textResult('one', { state: { checkpoint: 'c-1', parent: null, data: { notes: ['1'] } } })
    const parent = n === 4 ? 'c-1' : `c-${n - 1}`
    const state = { checkpoint: `c-${n}`, parent, patch: [{ op: 'add', path: '/notes/-', value: String(n) }] }
    return textResult('more', { state })
  },
  on: () => ({ 'state/rollback': ({ params }) => ({ checkpoint: params['checkpoint'], success: true }) }),
})

const byServer = livePlay('server-state', {
  steps: [again('1'), again('2'), { do: 'rollback', set: 'lab.count', checkpoint: 's-1', as: 'rollback' }, again('3')],
  wishes: calling(3),
  tools: [toolOf('lab.count')],
  during: ({ request }) => {
    const n = countOf(request)
    return textResult('counted', { state: { checkpoint: `s-${n}`, parent: n === 1 ? null : `s-${n - 1}` } })
  },
  on: () => ({ 'state/rollback': ({ params }) => ({ checkpoint: params['checkpoint'], success: false, reason: 'pruned' }) }),
})

/** One call, counted from 1; it must be there. */
function nth(n: number): Exclude<Select, string> {
  return seen => calls(seen).slice(n - 1, n)
}

function hasNotes(...notes: readonly string[]): (message: LoggedMessage) => boolean {
  return ({ params }) => sameJson(objectIn(params, 'state')['notes'], notes)
}

function lacks(member: string): (message: LoggedMessage) => boolean {
  return ({ params }) => !(member in params)
}

function counted(count: number): ClientNeed {
  return requires(seen => calls(seen).length >= count, `the host did not call test-tool ${count} times`)
}

const rolledBack = sent('state/rollback', 'the host rolled nothing back')

const states = [
  anyRow('L8.4-1 L8.4-2 L8.3-1 L8.3-2', 'Calls contain the current state, and the first one none').by([byHost, counted(3)], {
    'There is no state before the first call': first(nth(1), lacks('state')),
    'The second call must carry the state of the first result': first(nth(2), hasNotes('1')),
    'The third call must carry what the patch made': first(nth(3), hasNotes('1', '2')),
    'If the host stores the state, no checkpoint is sent': each(seen => calls(seen).slice(1, 3), lacks('checkpoint')),
  }),
  anyRow('L8.6-2 L8.5-1 L8.2-2 L8.3-3', 'After a rollback calls carry the restored state').by([byHost, rolledBack, counted(4)], {
    'state/rollback must name set and checkpoint': first(
      'state/rollback',
      params({ featureSet: 'lab.notes', checkpoint: 'c-1' }),
    ),
    'The call after the rollback must contain the restored state': first(nth(4), hasNotes('1')),
  }),
  anyRow('L8.7-1 L8.2-1', 'If the server stores the state, calls contain the checkpoint and no state').by(
    [byServer, counted(2)],
    {
      'There is no checkpoint before the first call': first(nth(1), lacks('checkpoint')),
      'The second call must carry checkpoint s-1 and no state': first(nth(2), params({ checkpoint: 's-1', state: is.absent })),
    },
  ),
  anyRow('L8.6-1', 'A rollback that the server refuses changes nothing').by([byServer, rolledBack, counted(3)], {
    'The state changed although the server refused': first(nth(3), params({ checkpoint: 's-2' })),
  }),
]

/** Hooks and state. */
export const inferenceScenarios = [...hooked, ...states]
