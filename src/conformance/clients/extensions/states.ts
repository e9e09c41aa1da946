/** Session state (E14) and transactions (E5): tokens and ids that come back as they are. */
import { isRecord } from '../../../jsonrpc/message.ts'
import { type Play, type Step, said } from '../play.ts'
import type { ClientScenario } from '../scenario.ts'
import { argumentsOf, type Seen } from '../seen.ts'
import { paramsOf, type Said } from '../stage/book.ts'
import { extending, key, offering, problemResult, under } from './define.ts'

/** Nothing that anybody may take apart. */
const FIRST = 'st.A/+=\u00e9 1'
const SECOND = 'st.B'

function call(n: string, conversation?: string): Step {
  return { do: 'call', tool: 'test-tool', arguments: { n }, as: n, ...(conversation === undefined ? {} : { conversation }) }
}

function stateful(name: string, steps: readonly Step[], tokens: Readonly<Record<string, unknown>>): Play {
  return {
    name,
    steps,
    report: true,
    capabilities: offering('state', 'problem'),
    on: () => ({
      'tools/call': ({ params }) => {
        const n = String(isRecord(params['arguments']) ? params['arguments']['n'] : '')
        const token = tokens[n]
        if (isRecord(token)) return problemResult(token)
        return said(
          'done',
          token === undefined ? {} : { _meta: { [key('state')]: { session_state: token, state_changed: true } } },
        )
      },
    }),
  }
}

const rotation = stateful('state-rotation', [call('one'), call('two'), call('three'), call('four'), call('else', 'another')], {
  one: FIRST,
  three: SECOND,
})
const invalid = stateful('state-invalid', [call('one'), call('two'), call('three')], {
  one: FIRST,
  two: { code: 'STATE_INVALID', message: 'Not mine', category: 'permanent', details: { recovery: 'restart' } },
})
const large = stateful('state-large', [call('one'), call('two')], { one: 'x'.repeat(70_000) })

function tokenOf(seen: Seen, n: string): unknown {
  const made = seen.calls('test-tool').find(one => argumentsOf(one)['n'] === n)
  return under(made, 'state')['session_state']
}

const calling = (seen: Seen): string | undefined =>
  seen.calls('test-tool').length > 1 ? undefined : 'the client did not make the calls'

const begun = { begun_at: '2026-01-01T00:00:00Z', timeout_seconds: 300, steps: [] }

function transacting(name: string, fails: boolean): Play {
  return {
    name,
    steps: [
      {
        do: 'transaction',
        calls: [
          { tool: 'test-tool', arguments: { n: 1 } },
          { tool: 'test-tool', arguments: { n: 2 } },
        ],
        as: 'tx',
      },
    ],
    report: true,
    capabilities: offering('transactions', 'idempotency', 'problem'),
    on: () => ({
      'transaction/begin': ({ params }) => ({ transaction_id: params['transaction_id'], status: 'begun', ...begun }),
      'transaction/commit': ({ params }) => ({
        transaction_id: params['transaction_id'],
        status: 'committed',
        steps_completed: 2,
        ...begun,
      }),
      'transaction/rollback': ({ params }) => ({
        transaction_id: params['transaction_id'],
        status: 'rolled_back',
        steps_compensated: [],
        ...begun,
      }),
      'transaction/get': ({ params }) => ({ transaction_id: params['transaction_id'], status: 'begun', ...begun }),
      'tools/call': ({ book }) =>
        fails && book.of('tools/call').length > 1
          ? problemResult({ code: 'INVALID_INPUT', message: 'No', category: 'permanent' })
          : said('done'),
    }),
  }
}

const committed = transacting('transaction', false)
const failed = transacting('transaction-failed', true)

const began = (seen: Seen): string | undefined =>
  seen.requests('transaction/begin').length > 0 ? undefined : 'the client began no transaction'

function idIn(request: Said | undefined): unknown {
  return paramsOf(request)['transaction_id']
}

export const states: readonly ClientScenario[] = [
  extending('E14-1', 'The last token comes back as it was given', rotation, {
    proves: ['E14-1', 'E14-4'],
    knows: 'state',
    needs: calling,
    check: (seen, { expect }) => {
      expect(tokenOf(seen, 'one') === undefined, 'The first call has a token that nobody gave', seen.calls().slice(0, 1))
      expect(tokenOf(seen, 'two') === FIRST, 'The token of the first answer was changed or left out', seen.calls().slice(1, 2))
      // An answer without a token leaves the old one good.
      expect(tokenOf(seen, 'three') === FIRST, 'An answer without a token has ended the state', seen.calls().slice(2, 3))
      expect(tokenOf(seen, 'four') === SECOND, 'The newest token was not taken', seen.calls().slice(3, 4))
    },
  }),
  extending('E14-6', 'A token stays in its conversation', rotation, {
    proves: ['E14-6'],
    knows: 'state',
    needs: calling,
    check: (seen, { expect, skip }) => {
      if (!seen.calls('test-tool').some(one => argumentsOf(one)['n'] === 'else')) skip('the client has one conversation only')
      expect(tokenOf(seen, 'else') === undefined, 'Another conversation came with the token of the first', seen.calls().slice(-1))
    },
  }),
  extending('E14-3', 'A token that the server refuses is not sent again', invalid, {
    proves: ['E14-3'],
    knows: 'state',
    needs: calling,
    check: (seen, { expect }) => {
      expect(tokenOf(seen, 'three') === undefined, 'A refused token was sent again', seen.calls().slice(-1))
    },
  }),
  extending('E14-2', 'A token of more than 64 KiB is dropped', large, {
    proves: ['E14-2'],
    knows: 'state',
    needs: calling,
    check: (seen, { expect }) => {
      expect(tokenOf(seen, 'two') === undefined, 'A token over the limit was kept and sent', [])
    },
  }),
  extending('E5-12', 'Every call of a transaction names it, and the end is told', committed, {
    proves: ['E5-12', 'E5-15'],
    knows: 'transactions',
    needs: began,
    check: (seen, { expect }) => {
      const id = idIn(seen.requests('transaction/begin')[0])
      const steps = seen.calls('test-tool')
      expect(typeof id === 'string' && id !== '', 'A transaction has an id', seen.requests('transaction/begin'))
      expect(
        steps.every(step => under(step, 'transactions')['transaction_id'] === id),
        'A step does not name its transaction',
        steps,
      )
      const names = steps.map(step => under(step, 'transactions')['step_id']).filter(name => name !== undefined)
      expect(new Set(names).size === names.length, 'Two steps have the same name', steps)
      expect(idIn(seen.requests('transaction/commit')[0]) === id, 'The transaction was not committed', seen.requests())
    },
  }),
  extending('E5-14', 'A transaction with a failed step is rolled back', failed, {
    proves: ['E5-14'],
    knows: 'transactions',
    needs: began,
    check: (seen, { expect }) => {
      const id = idIn(seen.requests('transaction/begin')[0])
      expect(idIn(seen.requests('transaction/rollback')[0]) === id, 'The transaction was left open', seen.requests())
      expect(
        seen.requests('transaction/commit').length === 0,
        'It was committed after a failure',
        seen.requests('transaction/commit'),
      )
    },
  }),
]
