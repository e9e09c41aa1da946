/** Mutations of the extensions that make calls reliable: keys, transactions, confirmation, permissions, state. */
import type { Json } from './box.ts'
import {
  isMade,
  objectIn,
  problem,
  remembered,
  request,
  result,
  saying,
  toolIn,
  unsaid,
  unsaidOf,
  waved,
  wishIn,
} from './faults.ts'
import { at, type Mutation } from './mutation.ts'

const session = at('2025-11-25')
const stateless = at('2026-07-28')

const keyOf = (message: Json): string | undefined => {
  const key = wishIn(message, 'idempotency')['idempotency_key']
  return typeof key === 'string' ? key : undefined
}
const asked = (method: string) => (change: (result: Json) => Json) => result(method, change)
const steps = (given: Json): readonly Json[] => (Array.isArray(given['steps_compensated']) ? given['steps_compensated'] : [])

export const reliabilityMutations: readonly Mutation[] = [
  session('key-unlooked', 'A key is not looked at: every call is made', ['ext/E5-2', 'ext/E5-3', 'ext/E5-4', 'ext/E5-10b'], () =>
    unsaid('idempotency'),
  ),
  session('key-other-arguments', 'A key with other arguments gets the first result instead of a refusal', ['ext/E5-3'], () =>
    remembered(keyOf, isMade),
  ),
  session('key-other-tool', 'A key that was used for another tool is taken', ['ext/E5-1'], () => waved('IDEMPOTENCY_CONFLICT')),
  session('replay-unmarked', 'A replay is not marked as one', ['ext/E5-2', 'ext/E5-10b'], () =>
    saying('idempotency', said => ({ ...said, was_replay: false })),
  ),
  session('replay-time', 'A replay has the time of the repetition', ['ext/E5-2'], () => {
    let ms = Date.now()
    return saying('idempotency', said => {
      ms += 1_000
      return { ...said, original_timestamp: new Date(ms).toISOString() }
    })
  }),
  session('duplicate-runs', 'A duplicate of a running call is executed too', ['ext/E5-4'], () => {
    let count = 0
    return request('tools/call', (params, message) => {
      const key = keyOf(message)
      if (key === undefined || toolIn(message) !== 'create_slowly') return params
      const meta = objectIn(params, '_meta')
      return { ...params, _meta: { ...meta, 'dev.vivarium/idempotency': { idempotency_key: `${key}-${++count}` } } }
    })
  }),
  session('transient-stored', 'A transient failure is stored under its key', ['ext/E5-5b'], () => remembered(keyOf)),
  session('key-for-ever', 'A key outlives its time to live', ['ext/E5-7'], () =>
    request('tools/call', (params, message) => {
      const key = keyOf(message)
      return key === undefined
        ? params
        : { ...params, _meta: { ...objectIn(params, '_meta'), 'dev.vivarium/idempotency': { idempotency_key: key } } }
    }),
  ),
  session('bad-key-taken', 'An invalid key is accepted', ['ext/E5-8'], () =>
    unsaid('idempotency', ({ idempotency_key: key }) => !/^[\w:.-]{1,128}$/.test(String(key))),
  ),
  session('replay-before-rights', 'A replay is sent to callers that may not make the call', ['ext/E5-9'], () =>
    remembered(keyOf, isMade),
  ),
  session('transaction-id-again', 'An id of a transaction can be used again', ['ext/E5-11'], () => ({
    answer: (answer, asked) =>
      asked['method'] === 'transaction/begin' && answer['error'] !== undefined
        ? { jsonrpc: '2.0', id: answer['id'], result: { transaction_id: 'x', status: 'begun' } }
        : answer,
  })),
  session('transaction-number', 'A method of an extension fails with a number of the protocol', ['ext/E5-11'], () => ({
    answer: answer =>
      objectIn(answer, 'error')['code'] === -31000
        ? { ...answer, error: { ...objectIn(answer, 'error'), code: -32603 } }
        : answer,
  })),
  session('late-step', 'A step of a transaction that is over is made', ['ext/E5-12'], () => waved('TRANSACTION_CONFLICT')),
  session('final-step', 'A tool that nothing undoes takes part in a transaction', ['ext/E5-13'], () =>
    unsaid('transactions', ({ transaction_id: id }) => typeof id === 'string'),
  ),
  session('rollback-forwards', 'Steps are undone in the order in which they were made', ['ext/E5-14'], () =>
    asked('transaction/rollback')(given => ({ ...given, steps_compensated: steps(given).toReversed() })),
  ),
  session('rollback-partial', 'A compensation that failed is not reported', ['ext/E5-14b'], () =>
    asked('transaction/rollback')(given => ({
      ...given,
      status: 'rolled_back',
      steps_compensated: steps(given).map(step => ({ step_id: step['step_id'], status: 'compensated' })),
    })),
  ),
  session('rollback-again', 'A rollback that is repeated has nothing to report', ['ext/E5-15'], () => {
    const ended = new Set<unknown>()
    return asked('transaction/rollback')(given => {
      if (ended.has(given['transaction_id'])) return { ...given, steps_compensated: [] }
      ended.add(given['transaction_id'])
      return given
    })
  }),
  session('timeout-ignored', 'A transaction that nobody touches stays open', ['ext/E5-16'], () =>
    asked('transaction/get')(given => ({ ...given, status: 'begun' })),
  ),
  session('commit-while-running', 'A commit while a step runs is taken', ['ext/E5-18'], () => ({
    answer: (answer, asked) =>
      asked['method'] === 'transaction/commit' && answer['error'] !== undefined
        ? { jsonrpc: '2.0', id: answer['id'], result: { status: 'committed' } }
        : answer,
  })),
  session('undone-key-replays', 'The key of an undone call replays its result', ['ext/X3'], () => remembered(keyOf, isMade)),
  session('every-call-keyed', 'Two calls without a key are one', ['ext/E5-2b'], () =>
    remembered(message =>
      message['method'] === 'tools/call' && keyOf(message) === undefined
        ? JSON.stringify(objectIn(message, 'params')['name'])
        : undefined,
    ),
  ),
  session('failure-unstored', 'A permanent failure is not stored under its key', ['ext/E5-5'], () =>
    unsaidOf('idempotency', 'fail_for_good'),
  ),
  session('import-unkeyed', 'An import does not look at its key', ['ext/E9-8'], () => unsaidOf('idempotency', 'import_from_ref')),
  session('rollback-waits', 'A compensation waits for a yes, and fails', ['ext/E5-17', 'ext/E5-14'], () =>
    asked('transaction/rollback')(given => ({ ...given, status: 'partially_rolled_back' })),
  ),
  ...consent(),
  ...rights(),
  ...states(),
]

function consent(): readonly Mutation[] {
  const token = (message: Json): string | undefined => {
    const said = wishIn(message, 'confirmation')
    return typeof said['confirmation_token'] === 'string' && said['user_confirmed'] === true
      ? said['confirmation_token']
      : undefined
  }
  return [
    session('yes-unneeded', 'A tool that needs a yes runs without one', ['ext/E6-2', 'ext/E6-3', 'ext/E6-4', 'ext/E3-1'], () =>
      waved('CONFIRMATION_REQUIRED'),
    ),
    session('plain-yes-unneeded', 'A client that cannot ask may call what needs a yes', ['ext/E6-2p'], () =>
      result('tools/call', (given, asked) =>
        toolIn(asked) === 'wipe_ticket' || given['isError'] === true ? { content: [{ type: 'text', text: 'Done' }] } : given,
      ),
    ),
    session('yes-twice', 'A yes works twice', ['ext/E6-4'], () => remembered(token, isMade)),
    session('yes-for-others', 'A yes works for other arguments', ['ext/E6-3'], () => {
      const first = new Map<string, unknown>()
      return {
        incoming: message => {
          const key = token(message)
          const params = objectIn(message, 'params')
          const args = key === undefined ? undefined : first.get(key)
          return args === undefined ? message : { ...message, params: { ...params, arguments: args } }
        },
        answer: (answer, asked) => {
          const given = objectIn(answer, 'result', '_meta', 'dev.vivarium/confirmation')['confirmation_token']
          if (typeof given === 'string' && !first.has(given)) first.set(given, objectIn(asked, 'params')['arguments'])
          return answer
        },
      }
    }),
    session('no-is-yes', 'A no lets the call through', ['ext/E6-5'], () => waved('CONFIRMATION_DECLINED')),
    session('no-asks-again', 'A no is asked again instead of declined', ['ext/E6-5', 'ext/E6-2e'], () =>
      problem(said => (said['code'] === 'CONFIRMATION_DECLINED' ? { ...said, code: 'CONFIRMATION_REQUIRED' } : said)),
    ),
    session('question-nameless', 'The question names neither tool nor server', ['ext/E6-6'], () =>
      saying('confirmation', said => ({ ...said, confirmation_message: 'Proceed?' })),
    ),
    session('placeholder-empty', 'Arguments are not in their places', ['ext/E6-6'], () =>
      saying('confirmation', said => ({
        ...said,
        confirmation_message: String(said['confirmation_message']).replace('T-1', '{id}'),
      })),
    ),
    session('risk-grows', 'The risk that is shown exceeds the one declared', ['ext/E6-7'], () =>
      saying('confirmation', said => ({ ...said, risk_level: 'catastrophic' })),
    ),
    session('page-unneeded', 'A call that only a page can approve is made by a form', ['ext/E6-9'], () =>
      result('tools/call', (given, asked) =>
        toolIn(asked) === 'close_account' ? { content: [{ type: 'text', text: 'Closed' }] } : given,
      ),
    ),
    session('changed-tool', 'What was agreed to before a tool changed still counts', ['ext/X4'], () =>
      result('tools/call', (given, asked) =>
        toolIn(asked) === 'shaky' && token(asked) !== undefined ? { content: [{ type: 'text', text: 'Called' }] } : given,
      ),
    ),
    stateless('answer-twice', 'One answer lets two calls through', ['ext/E6-3e'], () =>
      remembered(
        message => {
          const state = objectIn(message, 'params')['requestState']
          return typeof state === 'string' ? state : undefined
        },
        answer => isMade(answer) && objectIn(answer, 'result')['resultType'] === 'complete',
      ),
    ),
    stateless('approval-unneeded', 'What needs approval of its price runs without', ['ext/E3-1'], () =>
      waved('CONFIRMATION_REQUIRED'),
    ),
  ]
}

function rights(): readonly Mutation[] {
  return [
    session('scope-unchecked', 'Scopes are not checked', ['ext/E4-1', 'ext/E4-3', 'ext/E4-7', 'ext/E5-9'], () =>
      waved('SCOPE_INSUFFICIENT'),
    ),
    session('check-believes', 'A check counts what the client claims to hold', ['ext/E4-1'], () =>
      result('permissions/check', (given, asked) =>
        Array.isArray(objectIn(asked, 'params')['scopes_held']) ? { ...given, allowed: true } : given,
      ),
    ),
    session('checks-mixed', 'Several checks are answered in another order', ['ext/E4-2b'], () =>
      result('permissions/check', given =>
        Array.isArray(given['checks']) ? { ...given, checks: given['checks'].toReversed() } : given,
      ),
    ),
    session('check-always', 'A check always says yes', ['ext/E4-9', 'ext/E4-1'], () =>
      result('permissions/check', given => ({ ...given, allowed: true })),
    ),
    session('check-unknown-tool', 'A check of a tool that is not there names scopes', ['ext/E4-2'], () =>
      result('permissions/check', given => (given['allowed'] === false ? { ...given, missing_scopes: ['all'] } : given)),
    ),
    session('scopes-one-by-one', 'Only the first missing scope is named', ['ext/E4-3'], () =>
      problem(said => {
        const details = objectIn(said, 'details')
        const missing = details['missing_scopes']
        return Array.isArray(missing) ? { ...said, details: { ...details, missing_scopes: missing.slice(0, 1) } } : said
      }),
    ),
    session('denied-unsaid', 'Scopes that are not granted are not named', ['ext/E4-4'], () =>
      result('permissions/negotiate', given => ({ ...given, denied_scopes: [] })),
    ),
    session('grant-for-ever', 'A grant lasts longer than was asked for', ['ext/E4-5'], () =>
      request('permissions/negotiate', ({ ttl_seconds: _, ...params }) => params),
    ),
    session('elevation-plain', 'The page that grants more is on http', ['ext/E4-10'], () => ({
      answer: answer =>
        JSON.parse(JSON.stringify(answer).replaceAll('https://tickets.example/grant', 'http://tickets.example/grant')),
    })),
  ]
}

function states(): readonly Mutation[] {
  return [
    session('state-forged', 'A token that was tampered with is taken as none', ['ext/E14-3'], () => ({
      ...unsaid('state', ({ session_state: token }) => typeof token === 'string' && token.startsWith('eyJ')),
    })),
    session('state-lost', 'A call does not find the state of the one before', ['ext/E14-4', 'ext/E14-5'], () => unsaid('state')),
    session('state-unrotated', 'A call that changes the state gives the old token', ['ext/E14-4'], () => {
      let first: unknown
      return saying('state', said => {
        first ??= said['session_state']
        return { ...said, session_state: first }
      })
    }),
    session('state-mixed', 'A call without a token finds the state of another conversation', ['ext/E14-6', 'ext/E14-4'], () => {
      let last: unknown
      return {
        incoming: message => {
          const params = objectIn(message, 'params')
          const meta = objectIn(params, '_meta')
          if (toolIn(message) !== 'count_up' || last === undefined || meta['dev.vivarium/state'] !== undefined) return message
          return { ...message, params: { ...params, _meta: { ...meta, 'dev.vivarium/state': { session_state: last } } } }
        },
        answer: answer => {
          last = objectIn(answer, 'result', '_meta', 'dev.vivarium/state')['session_state'] ?? last
          return answer
        },
      }
    }),
    session('state-conflict-unseen', 'Two calls on one token overwrite each other', ['ext/E14-5c'], () =>
      waved('STATE_CONFLICT'),
    ),
    session('state-huge', 'A token is longer than 64 KiB', ['ext/E14-2'], () =>
      saying('state', said => ({ ...said, session_state: `${String(said['session_state'])}${'A'.repeat(65_536)}` })),
    ),
    session('state-way-out', 'An invalid state does not say how to continue', ['ext/E14-3'], () =>
      problem(({ details: _, ...said }) => said),
    ),
    session('state-of-undone', 'The state of an undone call is accepted', ['ext/X3'], () => waved('STATE_INVALID')),
  ]
}
