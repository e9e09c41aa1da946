import { describe, expect, test } from 'vitest'
import { carriesState, declaredUses, isConsented, type SetUse, setUses, usesUnder } from './announced.ts'

const facts = (uses: readonly string[], more: object = {}) => ({ description: '', uses, ...more })
const declared = (uses: readonly string[], more: object = {}) => [...declaredUses(facts(uses, more))].sort()

describe('what a set declares', () => {
  test('a path stands for all below it, and one below it for itself alone', () => {
    expect(declared(['contextHooks.beforeInference'])).toHaveLength(4)
    expect(declared(['contextHooks.beforeInference.inject.system'])).toEqual(['contextHooks.beforeInference.inject.system'])
    expect(declared(['contextHooks'])).toContain('contextHooks.afterInference')
    expect(declared(['channels'])).toEqual(['channels', 'channels.incoming', 'channels.publish'])
  })

  test('paths of later dialects are the same uses by other names', () => {
    expect(declared(['channels.observe'])).toEqual(['channels', 'channels.incoming'])
    expect(declared(['channels.register', 'channels.typing'])).toEqual(['channels'])
    expect(declared(['inferenceRequest.streaming', 'stateUpdate'])).toEqual(['inferenceRequest', 'state'])
  })

  test('streams of answers are for sets that name them: channels as a whole do not stand for them', () => {
    expect(declared(['channels.streaming'])).toEqual(['channels', 'channels.publish', 'channels.streaming'])
    expect(declared(['channels', 'channels.publish', 'channels.typing'])).not.toContain('channels.streaming')
  })

  test('flags of a declaration are uses, too', () => {
    expect(declared([], { scoped: true, rollback: true, hostState: true })).toEqual(['rollback', 'scopes', 'state'])
  })

  test('what is not known here, or only looks like it, is nothing', () => {
    for (const path of ['telepathy', 'push', 'pushEvents.all', 'contextHooks.before', '*', '', 'constructor', '__proto__'])
      expect(usesUnder(path)).toEqual([])
  })

  test('every use is declared by its own name', () => {
    for (const use of setUses) expect(declaredUses(facts([use])).has(use)).toBe(true)
  })
})

test('a path is granted where what it is about is agreed to', () => {
  const only = (...uses: SetUse[]) => new Set<SetUse>(uses)
  expect(isConsented('channels.publish', only('channels'))).toBe(false)
  expect(isConsented('channels.publish', only('channels.publish'))).toBe(true)
  expect(isConsented('contextHooks.beforeInference', only('contextHooks.beforeInference.observe'))).toBe(true)
  expect(isConsented('contextHooks.beforeInference.observe', only('contextHooks.afterInference'))).toBe(false)
  expect(isConsented('branches.list', only())).toBe(true)
})

test('state rides on calls of sets that declare it, and from 0.4 on of those with tools', () => {
  const tools = declaredUses(facts(['tools']))
  expect(['0.2', '0.3', '0.4', '0.5'].map(label => carriesState(tools, label))).toEqual([false, false, true, true])
  expect(carriesState(declaredUses(facts([], { hostState: true })), '0.2')).toBe(true)
})
