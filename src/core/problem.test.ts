import { expect, it } from 'vitest'
import { Problem, problem } from './problem.ts'

it('a problem carries its code, message and fix', () => {
  const refused = problem('INVALID_INPUT', 'The title is too short', { suggestion: 'Use at least 3 characters', actor: 'caller' })
  expect(refused).toBeInstanceOf(Problem)
  expect(refused).toMatchObject({
    name: 'Problem',
    code: 'INVALID_INPUT',
    message: 'The title is too short',
    category: 'invalid_input',
    suggestion: 'Use at least 3 characters',
    actor: 'caller',
  })
})

it.each([
  ['INVALID_INPUT', 'invalid_input', false],
  ['SCOPE_INSUFFICIENT', 'auth_required', false],
  ['RATE_LIMIT_EXCEEDED', 'rate_limited', true],
  ['SERVER_UNAVAILABLE', 'transient', true],
  ['SERVER_ERROR', 'permanent', false],
  ['OUR_OWN_CODE', 'permanent', false],
  ['constructor', 'permanent', false],
])('%s is %s unless said otherwise (E11)', (code, category, retryable) => {
  expect(problem(code, 'x')).toMatchObject({ category, retryable })
})

it('a category that is given wins over that of the code', () => {
  expect(problem('SERVER_ERROR', 'x', { category: 'transient' }).category).toBe('transient')
})

it('keeps the cause for the log', () => {
  const cause = new Error('disk full')
  expect(problem('SERVER_ERROR', 'x', { cause }).cause).toBe(cause)
  expect('cause' in problem('SERVER_ERROR', 'x')).toBe(false)
})
