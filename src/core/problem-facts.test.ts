import fc from 'fast-check'
import { expect, it } from 'vitest'
import { StoreError } from '../stores/store.ts'
import {
  type Problem,
  type ProblemFacts,
  problem,
  problemFactsOf,
  problemFrom,
  problemLimits,
  problemOf,
  upperSnake,
} from './problem.ts'

const anything = fc.oneof(fc.string(), fc.double(), fc.boolean(), fc.constant(null), fc.jsonValue())
const category = fc.constantFrom('transient', 'permanent', 'auth_required', 'invalid_input', 'rate_limited')

/** What the published schema of errors asks of one. */
function expectValid(facts: ProblemFacts): void {
  expect(facts.code).toMatch(/^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$/)
  expect(['transient', 'permanent', 'auth_required', 'invalid_input', 'rate_limited']).toContain(facts.category)
  expect(typeof facts.userActionable).toBe('boolean')
  if (facts.retryAfterSeconds !== undefined) {
    expect(Number.isSafeInteger(facts.retryAfterSeconds) && facts.retryAfterSeconds >= 0).toBe(true)
  }
  expect(Buffer.byteLength(JSON.stringify(facts.details ?? {}))).toBeLessThanOrEqual(8192)
  expect(facts.documentation ?? 'https:').toMatch(/^https:/)
}

it('E11-1: whatever an author says, what is told of it is valid', () => {
  const more = fc.record({
    retryAfter: fc.double(),
    documentation: fc.oneof(fc.string(), fc.constantFrom('https://example.com/', 'http://example.com/')),
    details: fc.object(),
  })
  fc.assert(
    fc.property(fc.string(), fc.string(), more, (code, message, more) => {
      expectValid(problemFactsOf(problem(code, message, { ...more, category: 'transient' })))
    }),
  )
})

it('E11-1: whatever a peer says is either no problem or a valid one, and is told on as the same', () => {
  const told = fc.record(
    { code: anything, message: anything, category: fc.oneof(category, anything), details: anything, retryAfterSeconds: anything },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(told, told => {
      const found = problemFrom(told)
      if (found === undefined) return
      expectValid(problemFactsOf(found))
      expect(problemFactsOf(problemFrom(problemFactsOf(found)) as Problem)).toEqual(problemFactsOf(found))
    }),
  )
})

it('E11: a problem that was told is the same problem at the other end', () => {
  const said = problem('RATE_LIMIT_EXCEEDED', 'Too many calls', {
    retryAfter: 1_200,
    suggestion: 'Wait a little',
    actor: 'user',
    details: { limit: 10 },
    documentation: 'https://example.com/limits',
    correlationId: 'op-1',
  })
  expect(problemFactsOf(said)).toMatchObject({ retryAfterSeconds: 2, userActionable: true })
  expect(problemFrom(problemFactsOf(said))).toMatchObject({ ...said, retryAfter: 2_000 })
})

it.each([
  ['INVALID_PARAMETERS', 'INVALID_INPUT', 'invalid_input'],
  ['TIMEOUT', 'OPERATION_TIMEOUT', 'transient'],
  ['UPSTREAM_ERROR', 'SERVER_UNAVAILABLE', 'transient'],
  ['TOKEN_EXPIRED', 'AUTHENTICATION_REQUIRED', 'auth_required'],
  ['SCOPE_INSUFFICIENT', 'SCOPE_INSUFFICIENT', 'auth_required'],
])('E11: %s of a peer is our %s, by itself %s', (code, ours, category) => {
  expect(problemFrom({ code, message: 'x' })).toMatchObject({ code: ours, category })
})

it('E11: an unknown code is decided by its category, and without one it is permanent', () => {
  expect(problemFrom({ code: 'TICKET_LOCKED', category: 'transient' })).toMatchObject({ code: 'TICKET_LOCKED', retryable: true })
  expect(problemFrom({ code: 'TICKET_LOCKED', category: 'later' })).toMatchObject({ category: 'permanent', retryable: false })
  expect(problemFrom({ code: 7, category: 'rate_limited' })).toMatchObject({ code: 'RATE_LIMIT_EXCEEDED' })
  expect(problemFrom({ code: 'constructor?', category: 'constructor' })).toBeUndefined()
})

it('E11-8: an address that is not https is dropped, the author’s and a peer’s', () => {
  for (const documentation of ['http://example.com/', 'javascript:alert(1)', 'example.com', 'https:']) {
    expect(problemFactsOf(problem('SERVER_ERROR', 'x', { documentation }))).not.toHaveProperty('documentation')
    expect(problemFrom({ code: 'SERVER_ERROR', documentation })?.documentation).toBeUndefined()
  }
})

it('E11-9: details above 8 KiB, counted in bytes, are told whole or not at all', () => {
  const sized = (text: string) => problemFactsOf(problem('SERVER_ERROR', 'x', { details: { text } })).details
  const room = problemLimits.detailsBytes - Buffer.byteLength('{"text":""}')
  expect(sized('x'.repeat(room))).toHaveProperty('text')
  expect(sized('x'.repeat(room + 1))).toEqual({ truncated: true })
  expect(sized('ä'.repeat(room / 2 + 1))).toEqual({ truncated: true })
  expect(problemFactsOf(problem('SERVER_ERROR', 'x', { details: { n: 1n } })).details).toEqual({ truncated: true })
})

it('E11: a wait is told only where trying again can help, and fits every timer', () => {
  expect(problemFactsOf(problem('INVALID_INPUT', 'x', { retryAfter: 500 }))).not.toHaveProperty('retryAfterSeconds')
  const { retryAfter } = problemFrom({ code: 'TIMEOUT', retryAfterSeconds: 1e300 }) as Problem
  expect(retryAfter).toBeLessThan(2 ** 31)
})

it('E11-7: of what a handler threw nothing is told but that it failed', () => {
  const thrown = new Error('ENOENT: /srv/secret/tickets.db')
  const found = problemOf(thrown, 'op-1')
  expect(found).toMatchObject({ code: 'SERVER_ERROR', category: 'permanent', cause: thrown })
  expect(JSON.stringify(problemFactsOf(found))).not.toMatch(/secret|ENOENT|\\.ts/)
  expect(problemFactsOf(found)).toMatchObject({ correlationId: 'op-1', userActionable: false })
})

it('E11-7: a store that fails and a time that is over are transient, a problem stays what it is', () => {
  expect(problemOf(new StoreError('full', 'disk'))).toMatchObject({ code: 'SERVER_UNAVAILABLE', retryable: true })
  expect(problemOf(new DOMException('x', 'TimeoutError'))).toMatchObject({
    code: 'OPERATION_TIMEOUT',
  })
  const own = problem('BUDGET_EXCEEDED', 'x')
  expect(problemOf(own)).toBe(own)
})

it.each([
  ['ticketClosed', 'TICKET_CLOSED'],
  ['not-found', 'NOT_FOUND'],
  ['__proto__', undefined],
  ['', undefined],
  ['A'.repeat(65), undefined],
])('E11: the code %j is told as %j', (code, told) => {
  expect(upperSnake(code)).toBe(told)
})
