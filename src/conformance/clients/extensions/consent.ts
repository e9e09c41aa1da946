/**
 * What is tried again, when, how often and under which key (E5, E11), and what must not be sent without a yes: confirmation (E6),
 * cost (E3), intent and suggestions (E2).
 */
import { orSkip, sameJson } from '../../expectations.ts'
import { extensionId } from '../../said.ts'
import type { Json } from '../../scenario.ts'
import { calls, each, first, isUndone, none, reported, requires, shownBy, some, times, under, unvisited } from '../checks.ts'
import { type ClientBody, type ClientScenario, knowing, offering, problemResult } from '../define.ts'
import type { LoggedMessage } from '../log.ts'
import { type Answers, call, listTools, type Play, plainSteps, play, reportedPlay, testTool, textResult } from '../play.ts'

// ── failures and keys ───────────────────────────────────────────────────────────────────────────────────────────────

const AFTER_MS = 1_000
const transient = { code: 'SERVER_UNAVAILABLE', message: 'Busy', category: 'transient' }
const writing = { ...testTool, annotations: { readOnlyHint: false, idempotentHint: false } }

/** The call fails with this problem; undefined: it does not. */
function failing(name: string, problem: Json | undefined, more: Partial<Play> = {}): Play {
  return reportedPlay(name, {
    answers: { retries: 3 },
    tools: [writing],
    capabilities: offering('idempotency', 'problem'),
    on: { 'tools/call': problem === undefined ? textResult('done') : problemResult(problem) },
    ...more,
  })
}

const busyOnce = failing('retry-after', undefined, {
  on: {
    'tools/call': ({ log }) =>
      log.of('tools/call').length === 1
        ? problemResult({ ...transient, retry_after_seconds: AFTER_MS / 1_000 })
        : textResult('done'),
  },
})
const busy = { ...transient, retry_after_seconds: 0 }
const alwaysBusy = failing('retry-bounded', busy)
const unkeyed = failing('retry-unkeyed', busy, { capabilities: offering('problem') })
const permanent = failing('permanent', { code: 'INVALID_INPUT', message: 'No', category: 'invalid_input' })
const lasting = failing('user-actionable', {
  code: 'QUOTA_EXHAUSTED',
  message: 'The month is over',
  category: 'permanent',
  user_actionable: true,
  suggestion: 'Buy more',
})
const noRight = {
  code: 'SCOPE_INSUFFICIENT',
  message: 'No right',
  category: 'auth_required',
  details: { missing_scopes: ['write'] },
}
const unauthorized = failing('auth-required', noRight, { answers: { authorize: true, retries: 3 } })
const elevated = failing('elevation-url', noRight, {
  answers: {},
  on: ({ origin }) => ({
    'tools/call': problemResult({ ...noRight, details: { missing_scopes: ['write'], elevation_url: `${origin}/elevate` } }),
  }),
})
const twoCalls = failing('keys', undefined, { steps: [...plainSteps, call('again')] })

/** What a key may look like. */
const keyForm = /^[a-zA-Z0-9_\-:.]{1,128}$/

function keyOf(message: LoggedMessage | undefined): unknown {
  return under(message, 'idempotency')['idempotency_key']
}

const keyRow = knowing('idempotency')
const problemRow = knowing('problem')

const failures = [
  keyRow('E11-3 E5-2', 'A transient failure is retried after the requested time, with the same key').by(
    {
      play: busyOnce,
      needs: [requires(seen => seen.calls('test-tool').length > 1, 'the client does not retry automatically')],
    },
    {
      'The second attempt has another key, or none': shownBy(calls, seen => {
        const [one, two] = calls(seen)
        return keyOf(one) !== undefined && keyOf(one) === keyOf(two)
      }),
      'The wait': seen => {
        const [one, two] = calls(seen)
        const waited = (two?.at ?? 0) - (one?.at ?? 0)
        // Its own clock may run a little before ours.
        return (
          waited >= AFTER_MS - 20 || `The client waited ${Math.round(waited)} ms; retry_after_seconds is ${AFTER_MS / 1_000} s`
        )
      },
      'Each attempt is a separate request': seen => calls(seen)[0]?.id !== calls(seen)[1]?.id,
    },
  ),
  keyRow('E11-3-bounded', 'Retries end after a limited number of attempts').by(alwaysBusy, {
    'The attempts': times(
      calls,
      count => count <= 3,
      count => `Three attempts were allowed, and ${count} were made`,
    ),
    'The attempts have several keys': seen => new Set(calls(seen).map(keyOf)).size === 1,
    'The client was still retrying': ({ end }) => !end.timedOut,
  }),
  problemRow('E11-3-unkeyed', 'Without keys a call that may change something is made once').by(unkeyed, {
    'The calls': times(calls, 1, count => `It was made ${count} times`),
  }),
  problemRow('E11-4', 'A request that failed permanently is not repeated unchanged').by(permanent, {
    'The calls': times(calls, 1, count => `It was sent ${count} times`),
  }),
  problemRow('E11-5', 'A missing permission is requested once, then reported').by(unauthorized, {
    'The calls': times(
      calls,
      count => count === 1 || count === 2,
      count => `The call was made ${count} times; after a new permission only one more attempt is allowed`,
    ),
    'The client reports a refusal as success': reported('call', isUndone),
  }),
  problemRow('E11-6', 'A failure that the user can resolve is reported to the user').by(lasting, {
    'the client does not report what its user saw': orSkip(seen => seen.reported.get('call')?.problem !== undefined),
    'The user did not see it': reported('call', ({ problem }) => problem),
  }),
  problemRow('E4-10', 'The client does not fetch the elevation_url').by(elevated, {
    'the client did not call the tool': orSkip(some(calls)),
    'The client fetched the elevation_url': unvisited('/elevate'),
  }),
  keyRow('E5-8 E5-1', 'Each call that may change something has its own key, of the right form').by(twoCalls, {
    'the client sends no keys': orSkip(seen => calls(seen).some(one => keyOf(one) !== undefined)),
    'A key is 1 to 128 of A-Z a-z 0-9 _ - : .': each(calls, one => {
      const key = keyOf(one)
      return typeof key === 'string' && keyForm.test(key)
    }),
    'Two calls have the same key, so the second would not run': shownBy(
      calls,
      seen => new Set(calls(seen).map(keyOf)).size === calls(seen).length,
    ),
    'The header Idempotency-Key names another key': each(calls, one => {
      const header = one.headers['idempotency-key']
      return header === undefined || header === keyOf(one)
    }),
  }),
]

// ── a yes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A play of one extension, with the tool as that describes it. */
function extended(name: string, extension: string, more: Partial<Play>): Play {
  return play(name, { report: true, answers: {}, capabilities: offering(extension, 'problem'), ...more })
}

const confirmation = { requires_confirmation: true, confirmation_message: 'Delete {what}?', risk_level: 'destructive' }

function confirming(name: string, answers: Answers, on: Play['on'] = {}): Play {
  const tools = [{ ...testTool, _meta: { [extensionId('confirmation')]: confirmation } }]
  return extended(name, 'confirmation', { tools, steps: [listTools, call('call', { what: 'all' })], answers, on })
}

const nobody = confirming('confirm-nobody', {})
const refused = confirming('confirm-no', { confirm: false })
const agreed = confirming('confirm-yes', { confirm: true })
const declined = confirming(
  'confirm-declined',
  { confirm: true, retries: 3 },
  { 'tools/call': problemResult({ code: 'CONFIRMATION_DECLINED', message: 'The user said no', category: 'permanent' }) },
)

/** A tool of this cost, called with a budget. */
function priced(name: string, cost?: Json, steps = [listTools, call('call', {}, { budget: 5 })]): Play {
  const described = cost === undefined ? {} : { _meta: { [extensionId('operational')]: { cost, latency: 'seconds' } } }
  return extended(name, 'operational', { tools: [{ ...testTool, ...described }], steps })
}

const unknownCost = priced('cost-unknown')
const affordable = priced('cost-known', { category: 'metered', estimated_units: 2, unit_label: 'credit' })
const expensive = priced('cost-over', { category: 'metered', estimated_units: 10, unit_label: 'credit' })
const needsApproval = { category: 'requires_approval', estimated_units: 1, unit_label: 'credit' }
const approval = priced('cost-approval', needsApproval, [...plainSteps])

const intended = [listTools, call('call', {}, { intent: 'clean up duplicates' })]
const suggesting: Partial<Play> = {
  steps: intended,
  tools: ['test-tool', 'better-tool', 'best-tool'].map(name => ({ name, inputSchema: { type: 'object' } })),
  on: {
    'tools/call': ({ params }) => {
      const next = params['name'] === 'test-tool' ? 'better-tool' : 'best-tool'
      const suggestion = { recommended_tool: next, reason: 'It does more', parameters: {} }
      return textResult('done', { _meta: { [extensionId('intent')]: { suggestion } } })
    },
  },
}
const silent = extended('intent-off', 'intent', { steps: intended })
const spoken = extended('intent-on', 'intent', { ...suggesting, answers: { intent: true } })
const followed = extended('intent-followed', 'intent', { ...suggesting, answers: { intent: true, suggestion: true } })

/** The call was not sent, and the client knows that it did not happen. */
const isUnsent: ClientBody = {
  'the client did not look at the tools': orSkip(seen => calls(seen).length > 0 || seen.requests('tools/list').length > 0),
  'The call was sent': none(calls),
  'A call that was not made is reported as done': reported('call', isUndone),
}
const saidYes = { 'the client has nobody to confirm': orSkip(some(calls)) }
const wasMade = { 'the client did not make the call': orSkip(some(calls)) }

function saysIntent(message: LoggedMessage): boolean {
  return under(message, 'intent')['intent'] !== undefined
}

const confirmationRow = knowing('confirmation')
const costRow = knowing('operational')
const intentRow = knowing('intent')

const consent = [
  problemRow('E6-1', 'A call that requires confirmation is not sent if nobody can be asked').by(nobody, isUnsent),
  confirmationRow('E6-1-no', 'A call that requires confirmation is not sent after a refusal').by(refused, isUnsent),
  confirmationRow('E6-10 E6-1', 'The approval is not an argument of the tool').by(agreed, {
    ...saidYes,
    'The arguments are not those of the call': first(calls, ({ args }) => sameJson(args, { what: 'all' })),
  }),
  confirmationRow('E6-5', 'The client does not repeat a call that the user declined').by(declined, {
    ...saidYes,
    'The calls': times(calls, 1, count => `The call was made ${count} times`),
  }),
  costRow('E3-7', 'A call of unknown price is not sent under a budget').by(unknownCost, isUnsent),
  costRow('E3-2', 'The budget of a call is sent to the server').by(affordable, {
    ...wasMade,
    'the client does not support budgets': orSkip(first(calls, one => under(one, 'operational')['max_units'] !== undefined)),
    'The budget': first(calls, one => {
      const told = under(one, 'operational')['max_units']
      return told === 5 || `max_units is ${JSON.stringify(told)} and must be 5`
    }),
  }),
  costRow('E3-2-over', 'A call that costs more than its budget is not sent').by(expensive, isUnsent),
  costRow('E3-1', 'A call whose cost requires approval is not sent without it').by(approval, isUnsent),
  problemRow('E2-7', 'The intent of a call is sent only to servers that the user allowed').by(silent, {
    ...wasMade,
    'The intent was sent although nobody allowed that': first(calls, one => !saysIntent(one)),
  }),
  intentRow('E2-4', 'Only the host follows a suggestion of the server').by(spoken, {
    'the client sends no intents': orSkip(first(calls, saysIntent)),
    'The suggested tool was called without a decision': none(seen => seen.calls('better-tool')),
  }),
  intentRow('E2-4-hop', 'A followed suggestion does not lead to another one').by(followed, {
    'the client follows no suggestions': orSkip(some(seen => seen.calls('better-tool'))),
    'The suggestion of a suggestion was followed': none(seen => seen.calls('best-tool')),
  }),
]

/** Failures, and what needs a yes. */
export const consentScenarios: readonly ClientScenario[] = [...failures, ...consent]
