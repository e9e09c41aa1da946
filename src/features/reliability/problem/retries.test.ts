import { describe, expect, it } from 'vitest'
import { type Problem, problem } from '../../../core/problem.ts'
import { ConnectionError } from '../../../jsonrpc/connection.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { fakeClock } from '../../../testing/clock.ts'
import { Retries } from './client.ts'

type RetriesOptions = ConstructorParameters<typeof Retries>[0]

/** Attempts that end with these, one after the other, and the moments at which they were made. */
function make(ends: readonly (Problem | Error | undefined)[], options: Partial<RetriesOptions> = {}, harmless = true) {
  const clock = fakeClock(0)
  const at: number[] = []
  const retries = new Retries({ retry: {}, clock, random: () => 0.5, ...options })
  const stop = new AbortController()
  const attempt = async () => {
    const end = ends[Math.min(at.length, ends.length - 1)]
    at.push(clock.now())
    if (end instanceof Error && end.name !== 'Problem') throw end
    return { problem: end as Problem | undefined }
  }
  const call = () => {
    const parts = { tool: 't', attempt, harmless: () => harmless, open: () => true, signal: stop.signal }
    const made = retries.call(parts).catch(error => error)
    let over = false
    made.then(() => {
      over = true
    })
    return { made, isOver: () => over }
  }
  /** Lets time pass until the call has ended. */
  const run = async (): Promise<unknown> => {
    const { made, isOver } = call()
    for (let turn = 0; turn < 10_000; turn++) {
      for (let tick = 0; tick < 20; tick++) await Promise.resolve()
      if (isOver()) return made
      clock.advance(25)
    }
    throw new Error('never ends')
  }
  return { run, at, clock, stop, retries }
}

const transient = problem('SERVER_UNAVAILABLE', 'Not now')
const waits = (ms: number): Problem => problem('RATE_LIMIT_EXCEEDED', 'Too many', { retryAfter: ms })

describe('a failed call', () => {
  it('E11-3: is made again, each time after a longer wait of which a part is chance', async () => {
    const { run, at } = make([transient, transient, transient, undefined])
    expect(await run()).toEqual({ problem: undefined })
    expect(at).toEqual([0, 125, 375, 875])
  })

  it('E11-3: is never made again before the server wants it', async () => {
    const { run, at } = make([waits(2_000), waits(1_000), undefined], { random: () => 0 })
    await run()
    expect(at).toEqual([0, 2_000, 3_000])
  })

  it('E11-3: is given up after so many attempts, with what the last one gave', async () => {
    const { run, at } = make([transient], { retry: { attempts: 2 } })
    expect(await run()).toEqual({ problem: transient })
    expect(at).toHaveLength(2)
  })

  it('E11-3: is given up at once where the wait would be longer than the time there is', async () => {
    const { run, at } = make([waits(31_000)])
    await run()
    expect(at).toEqual([0])
  })

  it('E11-3: is not made again where that might do harm, nor where nobody wants repetitions', async () => {
    const [harmful, never] = [make([transient], {}, false), make([transient], { retry: false })]
    await harmful.run()
    await never.run()
    expect([harmful.at, never.at]).toEqual([[0], [0]])
  })

  it.each(['INVALID_INPUT', 'SERVER_ERROR', 'OUTCOME_UNKNOWN', 'IDEMPOTENCY_CONFLICT', 'SOMETHING_ELSE'])(
    'E11-4: with %s is never made again unchanged',
    async code => {
      const { run, at } = make([problem(code, 'No')])
      await run()
      expect(at).toHaveLength(1)
    },
  )

  it('E11-3: is repeated for a part of all calls only', async () => {
    const { run, at } = make([transient], { retry: { attempts: 4 } })
    for (let call = 0; call < 20; call++) await run()
    // 20 calls, 10 repetitions at once, and a tenth for each further call.
    expect(at.length).toBeGreaterThanOrEqual(30)
    expect(at.length).toBeLessThanOrEqual(32)
  })

  it('that its caller gives up is not made again', async () => {
    const { run, at, stop } = make([transient])
    stop.abort()
    await run()
    expect(at).toHaveLength(1)
  })

  it('that broke off, or was refused by a busy door, is made again; what it threw is thrown in the end', async () => {
    const lost = new ConnectionError('lost', 'gone')
    const busy = new ConnectionError('status', 'HTTP 503', { status: 503, headers: { 'retry-after': '3' } })
    const limited = new McpError('remote', 'Too many', { code: -32603, status: 429, data: { retryAfterMs: 4_000 } })
    const { run, at } = make([busy, limited, lost, lost], { random: () => 0 })
    expect(await run()).toBe(lost)
    expect(at.slice(0, 3)).toEqual([0, 3_000, 7_000])
    expect(at).toHaveLength(4)
  })

  it('that ran out of time is told as such, also where its repetition only hears that it was begun', async () => {
    const late = problem('OPERATION_TIMEOUT', 'Tool pay took longer than its timeout of 200 ms')
    const { run, at } = make([transient, late, problem('OUTCOME_UNKNOWN', 'The call under this key was begun')])
    expect(await run()).toEqual({ problem: late })
    expect(at).toHaveLength(3)
  })

  it('whose own deadline has passed is not made again', async () => {
    const { run, at } = make([new McpError('timeout', 'No answer')])
    await run()
    expect(at).toHaveLength(1)
  })

  it('E11-5: for want of a right is made once more when that was got, and then surfaces', async () => {
    const asked: unknown[] = []
    const onAuthRequired = (lacking: Problem, { tool }: { tool: string }) => asked.push([lacking.code, tool]) > 0
    const lacking = problem('SCOPE_INSUFFICIENT', 'Not yours')
    const { run, at } = make([lacking], { onAuthRequired })
    expect(await run()).toEqual({ problem: lacking })
    expect([at.length, asked]).toEqual([2, [['SCOPE_INSUFFICIENT', 't']]])
    const refused = make([lacking], { onAuthRequired: () => false })
    await refused.run()
    expect(refused.at).toHaveLength(1)
  })

  it('E11-5: that was done although the right to its result is missing is repeated only where that does no harm', async () => {
    const withheld = problem('SCOPE_INSUFFICIENT', 'Done, but withheld', { details: { executed: true } })
    const [harmful, harmless] = [false, true].map(each => make([withheld], { onAuthRequired: () => true }, each))
    expect(await harmful?.run()).toEqual({ problem: withheld })
    await harmless?.run()
    expect([harmful?.at.length, harmless?.at.length]).toEqual([1, 2])
  })

  it('E11-6: that the user can do something about is told to the user, once and in the end', async () => {
    const told: unknown[] = []
    const onProblem = (about: Problem) => told.push([about.message, about.suggestion])
    const full = problem('QUOTA_EXHAUSTED', 'Nothing left', { actor: 'user', suggestion: 'Buy more' })
    await make([full], { onProblem }).run()
    await make([full, undefined], { onProblem }).run()
    await make([transient], { onProblem }).run()
    expect(told).toEqual([['Nothing left', 'Buy more']])
  })
})
