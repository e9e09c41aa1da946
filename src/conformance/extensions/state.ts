/** E14: what a call leaves the next one finds, by a token that its client echoes. */
import type { Scenario } from '../scenario.ts'
import { bringing } from '../tools.ts'
import { isTime, scenariosOf } from './scenario-of.ts'
import { type Called, shownIn } from './talk.ts'

const scenario = scenariosOf('state')

const branching = bringing('state:branch')
const conflicting = bringing('state:conflict')
const large = bringing('state:large')

const tokenOf = (called: Called): unknown => called.member('state')['session_state']
const on = (token: unknown): Record<string, unknown> => ({ state: { session_state: token } })

export const state: readonly Scenario[] = [
  scenario({
    id: 'E14-2',
    title: 'A token is at most 64 KiB, however much is remembered',
    tools: { large },
    run: async ({ talk, tools: { large }, made, text, expect }) => {
      const called = await talk.call(large.name, large.args)
      made(called, 'A call that remembers much')
      expect(
        text(tokenOf(called), 'A call that remembers gives no session_state', called.frames).length <= 65_536,
        'session_state is longer than 64 KiB',
        called.frames,
      )
    },
  }),
  scenario({
    id: 'E14-3',
    title: 'A token that was tampered with is refused, and the way out is to start again',
    tools: { branching },
    run: async ({ talk, tools: { branching }, refused, text, expect }) => {
      const first = await talk.call(branching.name, branching.args)
      const token = text(tokenOf(first), 'A call with state gives no session_state', first.frames)
      const middle = Math.floor(token.length / 2)
      const bent = `${token.slice(0, middle)}${token[middle] === 'A' ? 'B' : 'A'}${token.slice(middle + 1)}`
      for (const wrong of ['eyJmb3JnZWQiOnRydWV9', bent]) {
        const called = await talk.call(branching.name, branching.args, on(wrong))
        refused(called, 'STATE_INVALID', 'A token that is none of the server')
        expect(
          JSON.stringify(called.problem['details'] ?? {}).includes('"recovery":"restart"'),
          'STATE_INVALID has no details.recovery: "restart"',
          called.frames,
        )
      }
    },
  }),
  scenario({
    id: 'E14-4',
    title: 'Each call that changes the state gives another token, which leads on',
    tools: { branching },
    run: async ({ talk, tools: { branching }, expect, made }) => {
      const one = await talk.call(branching.name, branching.args)
      const two = await talk.call(branching.name, branching.args, on(tokenOf(one)))
      made(two, 'A call on the state of the first')
      expect(
        tokenOf(two) !== tokenOf(one) && two.member('state')['state_changed'] === true,
        'A call that changed the state gives the old token, or does not say so',
        two.frames,
      )
      expect(isTime(two.member('state')['expires_at']), 'A token has no expires_at', two.frames)
      expect(shownIn(one.result) !== shownIn(two.result), 'The second call did not find the state of the first', [
        ...one.frames,
        ...two.frames,
      ])
      const fresh = await talk.call(branching.name, branching.args)
      expect(shownIn(fresh.result) === shownIn(one.result), 'A call without a token found a state', fresh.frames)
    },
  }),
  scenario({
    id: 'E14-5',
    title: 'Two calls on one token have a state each',
    tools: { branching },
    run: async ({ talk, tools: { branching }, made, expect }) => {
      const root = await talk.call(branching.name, branching.args)
      const left = await talk.call(branching.name, branching.args, on(tokenOf(root)))
      const right = await talk.call(branching.name, branching.args, on(tokenOf(root)))
      made(left, 'The first call on a token')
      made(right, 'The second call on the same token')
      expect(
        tokenOf(left) !== tokenOf(right) && shownIn(left.result) === shownIn(right.result),
        'Two calls on one token share their state',
        [...left.frames, ...right.frames],
      )
      const further = await talk.call(branching.name, branching.args, on(tokenOf(left)))
      made(further, 'A call on the first branch')
      expect(shownIn(further.result) !== shownIn(left.result), 'A branch lost its state', further.frames)
    },
  }),
  scenario({
    id: 'E14-5c',
    also: ['E14-5'],
    title: 'Where a tool wants one after the other, the later of two calls on one token is refused',
    tools: { conflicting },
    run: async ({ talk, tools: { conflicting }, made, refused }) => {
      const root = await talk.call(conflicting.name, conflicting.args)
      made(await talk.call(conflicting.name, conflicting.args, on(tokenOf(root))), 'The first call on a token')
      refused(
        await talk.call(conflicting.name, conflicting.args, on(tokenOf(root))),
        'STATE_CONFLICT',
        'The second call on the same token',
      )
    },
  }),
  scenario({
    id: 'E14-6',
    title: 'Two conversations on one connection do not mix',
    tools: { branching },
    run: async ({ talk, tools: { branching }, expect }) => {
      const one = await talk.call(branching.name, branching.args)
      const other = await talk.call(branching.name, branching.args)
      const further = await talk.call(branching.name, branching.args, on(tokenOf(one)))
      const beside = await talk.call(branching.name, branching.args, on(tokenOf(other)))
      expect(
        shownIn(further.result) === shownIn(beside.result) && shownIn(one.result) === shownIn(other.result),
        'One conversation sees the state of another',
        [...further.frames, ...beside.frames],
      )
    },
  }),
]
