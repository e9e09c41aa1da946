/** E14: what a call leaves the next one finds, by a token that its client echoes. */
import { alike, hasMeta, isMade, isRefusedBy, type PeerAnswer, shownIn, showsAs, showsOtherThan } from '../calls.ts'
import { extensionTable } from '../define.ts'
import { isTime, isWord } from '../expectations.ts'
import type { Scenario } from '../scenario.ts'
import { callTool, type Scene } from '../steps.ts'
import { bringing } from '../tools.ts'

const row = extensionTable('state')

const branching = bringing('state:branch')
const conflicting = bringing('state:conflict')
const large = bringing('state:large')

/** The token of a state that a call has left. */
export const stateTokenIn = (called: PeerAnswer): unknown => called.member('state').session_state
/** A call on a state. */
export const onState = (token: unknown) => ({ say: { state: { session_state: token } } })
/** A call on the state that an earlier answer has left. */
const on = (at: number) => (x: Scene) => onState(stateTokenIn(x.was(at)))

const unsealed = (wrong: (token: string) => string) =>
  callTool(branching, x => onState(wrong(String(stateTokenIn(x.was(0)))))).expect({
    'A token that is none of the server': isRefusedBy('STATE_INVALID'),
    'STATE_INVALID has no details.recovery: "restart"': it =>
      JSON.stringify(it.problem.details ?? {}).includes('"recovery":"restart"'),
  })

export const state: readonly Scenario[] = [
  row('E14-2', 'A token is at most 64 KiB, however much is remembered', [
    callTool(large).expect({
      'A call that remembers much': isMade,
      'A call that remembers gives no session_state': hasMeta('state', { session_state: isWord }),
      'session_state is longer than 64 KiB': it => String(stateTokenIn(it)).length <= 65_536,
    }),
  ]),
  row('E14-3', 'A token that was tampered with is refused, and the way out is to start again', [
    callTool(branching).expect({ 'A call with state gives no session_state': hasMeta('state', { session_state: isWord }) }),
    unsealed(() => 'eyJmb3JnZWQiOnRydWV9'),
    unsealed(token => {
      const middle = Math.floor(token.length / 2)
      return `${token.slice(0, middle)}${token[middle] === 'A' ? 'B' : 'A'}${token.slice(middle + 1)}`
    }),
  ]),
  row('E14-4', 'Each call that changes the state gives another token, which leads on', [
    callTool(branching),
    callTool(branching, on(0)).expect({
      'A call on the state of the first': isMade,
      'A call that changed the state gives the old token, or does not say so': (it, { was }) =>
        stateTokenIn(it) !== stateTokenIn(was(0)) && it.member('state').state_changed === true,
      'A token has no expires_at': hasMeta('state', { expires_at: isTime }),
      'The second call did not find the state of the first': showsOtherThan(0),
    }),
    callTool(branching).expect({ 'A call without a token found a state': showsAs(0) }),
  ]),
  row('E14-5', 'Two calls on one token have a state each', [
    callTool(branching),
    callTool(branching, on(0)),
    callTool(branching, on(0)).expect({
      'The first call on a token': (_, x, says) => isMade(x.was(1), x, says),
      'The second call on the same token': isMade,
      'Two calls on one token share their state': (it, { was }) => stateTokenIn(was(1)) !== stateTokenIn(it) && alike(was(1), it),
    }),
    callTool(branching, on(1)).expect({
      'A call on the first branch': isMade,
      'A branch lost its state': showsOtherThan(1),
    }),
  ]),
  row('E14-5c E14-5', 'Where a tool wants one after the other, the later of two calls on one token is refused', [
    callTool(conflicting),
    callTool(conflicting, on(0)).expect({ 'The first call on a token': isMade }),
    callTool(conflicting, on(0)).expect({ 'The second call on the same token': isRefusedBy('STATE_CONFLICT') }),
  ]),
  row('E14-6', 'Two conversations on one connection do not mix', [
    callTool(branching),
    callTool(branching),
    callTool(branching, on(0)),
    callTool(branching, on(1)).expect({
      'One conversation sees the state of another': (it, { was }) =>
        shownIn(was(2)) === shownIn(it) && shownIn(was(0)) === shownIn(was(1)),
    }),
  ]),
]
