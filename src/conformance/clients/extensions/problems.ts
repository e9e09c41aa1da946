/** Structured errors and idempotency keys: what is tried again, when, how often and under which key (E5, E11). */
import { type Play, RUN, said, testTool } from '../play.ts'
import type { ClientScenario } from '../scenario.ts'
import type { Said } from '../stage/book.ts'
import { extending, offering, problemResult, under } from './define.ts'

const AFTER_MS = 1_000
const transient = { code: 'SERVER_UNAVAILABLE', message: 'Busy', category: 'transient' }
const writing = { ...testTool, annotations: { readOnlyHint: false, idempotentHint: false } }

function failing(name: string, problem: (call: number) => Record<string, unknown> | undefined, more: Partial<Play> = {}): Play {
  return {
    name,
    steps: RUN,
    report: true,
    answers: { retries: 3 },
    tools: [writing],
    capabilities: offering('idempotency', 'problem'),
    on: () => ({
      'tools/call': ({ book }) => {
        const about = problem(book.of('tools/call').length)
        return about === undefined ? said('done') : problemResult(about)
      },
    }),
    ...more,
  }
}

const once = failing('retry-after', call => (call === 1 ? { ...transient, retry_after_seconds: AFTER_MS / 1_000 } : undefined))
const always = failing('retry-bounded', () => ({ ...transient, retry_after_seconds: 0 }))
const unkeyed = failing('retry-unkeyed', () => ({ ...transient, retry_after_seconds: 0 }), { capabilities: offering('problem') })
const permanent = failing('permanent', () => ({ code: 'INVALID_INPUT', message: 'No', category: 'invalid_input' }))
const lasting = failing('user-actionable', () => ({
  code: 'QUOTA_EXHAUSTED',
  message: 'The month is over',
  category: 'permanent',
  user_actionable: true,
  suggestion: 'Buy more',
}))
const noRight = {
  code: 'SCOPE_INSUFFICIENT',
  message: 'No right',
  category: 'auth_required',
  details: { missing_scopes: ['write'] },
}
const auth = failing('auth-required', () => noRight, { answers: { authorize: true, retries: 3 } })

const elevated: Play = failing('elevation-url', () => noRight, {
  answers: {},
  on: ({ origin }) => ({
    'tools/call': () => problemResult({ ...noRight, details: { missing_scopes: ['write'], elevation_url: `${origin}/elevate` } }),
  }),
})

const twoCalls: Play = {
  ...failing('keys', () => undefined),
  steps: [...RUN, { do: 'call', tool: 'test-tool', arguments: {}, as: 'again' }],
}

/** Not part of a call's key: whoever sends them twice does one thing. */
const SHAPE = /^[a-zA-Z0-9_\-:.]{1,128}$/

function keyOf(call: Said | undefined): unknown {
  return under(call, 'idempotency')['idempotency_key']
}

export const problems: readonly ClientScenario[] = [
  extending('E11-3', 'A passing failure is tried again not before the server wants it, under the same key', once, {
    proves: ['E11-3', 'E5-2'],
    knows: 'idempotency',
    check: (seen, { expect, skip }) => {
      const [first, second] = seen.calls('test-tool')
      if (first === undefined || second === undefined) return skip('the client does not try again by itself')
      expect(keyOf(first) !== undefined && keyOf(first) === keyOf(second), 'The second attempt has another key, or none', [
        first,
        second,
      ])
      const waited = second.at - first.at
      // Its own clock may run a little before ours.
      expect(waited >= AFTER_MS - 20, `It waited ${Math.round(waited)} ms; retry_after_seconds said ${AFTER_MS / 1_000} s`, [
        first,
        second,
      ])
      expect(first.frame?.['id'] !== second.frame?.['id'], 'Each attempt is a request of its own', [first, second])
    },
  }),
  extending('E11-3-bounded', 'A failure that does not pass is given up', always, {
    proves: ['E11-3'],
    knows: 'idempotency',
    check: (seen, { expect }) => {
      const calls = seen.calls('test-tool')
      expect(calls.length <= 3, `Three attempts were allowed, and ${calls.length} were made`, calls.slice(-2))
      expect(new Set(calls.map(keyOf)).size === 1, 'The attempts have several keys', calls)
      expect(!seen.end.timedOut, 'The client was still trying')
    },
  }),
  extending('E11-3-unkeyed', 'Without keys a call that may change something is made once', unkeyed, {
    proves: ['E11-3'],
    knows: 'problem',
    check: (seen, { expect }) => {
      expect(seen.calls('test-tool').length === 1, `It was made ${seen.calls('test-tool').length} times`, seen.calls())
    },
  }),
  extending('E11-4', 'What is wrong for good is not sent again unchanged', permanent, {
    proves: ['E11-4'],
    knows: 'problem',
    check: (seen, { expect }) => {
      expect(seen.calls('test-tool').length === 1, `It was sent ${seen.calls('test-tool').length} times`, seen.calls())
    },
  }),
  extending('E11-5', 'A missing right is asked for once, then told', auth, {
    proves: ['E11-5'],
    knows: 'problem',
    check: (seen, { expect }) => {
      const { length } = seen.calls('test-tool')
      expect(
        length >= 1 && length <= 2,
        `The call was made ${length} times; one more try is all that a new right is good for`,
        seen.calls(),
      )
      const entry = seen.reported.get('call')
      expect(entry === undefined || entry.isError === true || !entry.ok, 'The client takes a refusal for success', seen.calls())
    },
  }),
  extending('E11-6', 'What the user can do something about is told to the user', lasting, {
    proves: ['E11-6'],
    knows: 'problem',
    check: (seen, { expect, skip }) => {
      const told = seen.reported.get('call')?.problem
      if (told === undefined) return skip('the client does not report what its user was told')
      expect(told, 'The user was not told', seen.calls())
    },
  }),
  extending('E4-10', 'The address where a right can be got is not fetched by the client', elevated, {
    proves: ['E4-10'],
    knows: 'problem',
    check: (seen, { expect, skip }) => {
      if (seen.calls('test-tool').length === 0) skip('the client did not call the tool')
      expect(seen.visits('GET', '/elevate').length === 0, 'The client fetched the elevation_url')
    },
  }),
  extending('E5-8', 'Each call that may change something has a key of its own, of the right form', twoCalls, {
    proves: ['E5-8', 'E5-1'],
    knows: 'idempotency',
    check: (seen, { expect, skip }) => {
      const calls = seen.calls('test-tool')
      const keys = calls.map(keyOf)
      if (keys.every(one => one === undefined)) skip('the client sends no keys')
      expect(
        keys.every(one => typeof one === 'string' && SHAPE.test(one)),
        'A key is 1 to 128 of A-Z a-z 0-9 _ - : .',
        calls,
      )
      expect(new Set(keys).size === keys.length, 'Two calls have the same key: the second would not be done', calls)
      for (const call of calls) {
        const header = call.http?.headers['idempotency-key']
        expect(header === undefined || header === keyOf(call), 'The header Idempotency-Key names another key', [call])
      }
    },
  }),
]
