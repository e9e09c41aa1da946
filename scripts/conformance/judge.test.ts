import { describe, expect, it } from 'vitest'
import { type Check, judge, judgeClientEnd, judgeOffer, summarise } from './judge.ts'
import { leftOut, planLines } from './plan.ts'

const check = (id: string, status: Check['status'], more: Partial<Check> = {}): Check => ({ id, status, ...more })

describe('judge', () => {
  it('passes a scenario whose checks all succeeded', () => {
    expect(judge('ping', [check('ping', 'SUCCESS'), check('note', 'INFO')])).toEqual({
      scenario: 'ping',
      passed: 1,
      failures: [],
    })
  })

  it('fails on a warning', () => {
    const { failures } = judge('ping', [check('a', 'SUCCESS'), check('b', 'WARNING', { errorMessage: 'should not' })])
    expect(failures).toEqual([{ id: 'b', message: '(warning) should not' }])
  })

  it('wants one success that is more than the schema of the messages', () => {
    expect(judge('ping', [check('wire-schema-valid', 'SUCCESS'), check('a', 'SKIPPED')]).failures[0]?.id).toBe('no-evidence')
    expect(judge('ping', []).failures[0]?.id).toBe('no-evidence')
  })

  it('fails a scenario that left no result', () => {
    expect(judge('ping', undefined).failures[0]?.id).toBe('did-not-run')
  })
})

describe('judgeClientEnd', () => {
  const output = '\nClient exited with code 3\n\nStdout:\nhello\n\nStderr:\noh\nno\n'

  it('fails a client that ended with an error, unless the suite excused it', () => {
    expect(judgeClientEnd(output, true)).toEqual([{ id: 'client-exit', message: 'the client ended with status 3: oh no' }])
    expect(judgeClientEnd(output, false)).toEqual([])
  })

  it('fails a client that had to be stopped', () => {
    expect(judgeClientEnd('Client timed out after 20000ms', false)[0]?.message).toContain('within 20 s')
  })
})

it('a client has to offer the revision it was told to speak', () => {
  const offer = (version: string) => [
    check('mcp-client-initialization', 'SUCCESS', { details: { protocolVersionSent: version } }),
  ]
  expect(judgeOffer(offer('2025-06-18'), '2025-06-18')).toEqual([])
  expect(judgeOffer(offer('2025-11-25'), '2025-06-18')[0]?.id).toBe('offered-version')
})

it('a line counts scenarios without failures, and failures among the checks', () => {
  const verdicts = [judge('a', [check('x', 'SUCCESS')]), judge('b', [check('x', 'SUCCESS'), check('y', 'FAILURE')])]
  expect(summarise('server 2025-11-25', verdicts)).toBe('server 2025-11-25: 1/2 scenarios, 2/3 checks')
})

it('older revisions get the scenarios of 2025-06-18 by a proxy, less what they do not know', () => {
  const server = ['ping', 'tools-call-elicitation', 'tools-call-audio'].map(name => ({ name, revisions: ['2025-06-18'] }))
  const lines = planLines({ server: [...server, { name: 'tasks-lifecycle', revisions: [] }], client: [] })
  expect(lines.slice(0, 3).map(({ revision, pinned, scenarios }) => [revision, pinned, scenarios.length])).toEqual([
    ['2024-11-05', true, 1],
    ['2025-03-26', true, 2],
    ['2025-06-18', true, 3],
  ])
  expect(lines.find(({ forced }) => forced)).toMatchObject({ title: 'server 2026-07-28 tasks', scenarios: ['tasks-lifecycle'] })
})

it('a client is held against the authorization scenarios of its revision, and those of the extensions', () => {
  const client = [
    { name: 'auth/metadata-default', revisions: ['2025-11-25'] },
    { name: 'auth/dpop', revisions: [] },
    { name: 'sep-2640-client-no-prefetch', revisions: [] },
  ]
  const lines = planLines({ server: [], client }).filter(({ side }) => side === 'client')
  expect(lines.filter(({ scenarios }) => scenarios.length > 0).map(({ title, scenarios }) => [title, scenarios])).toEqual([
    ['client 2025-11-25', ['auth/metadata-default']],
    ['client 2026-07-28 auth extensions', ['auth/dpop']],
  ])
})

it('what no line runs is named with its reason, and what has none stands out', () => {
  const scenario = (name: string) => ({ name, revisions: [] })
  const server = [scenario('tasks-lifecycle'), scenario('tasks-status-notifications'), scenario('sep-2640-skills-manifest')]
  const client = [scenario('auth/dpop'), scenario('sep-2640-client-no-prefetch'), scenario('something-new')]
  expect(leftOut({ server, client })).toEqual([
    { side: 'server', name: 'tasks-status-notifications', why: 'the suite skips it itself, always' },
    { side: 'server', name: 'sep-2640-skills-manifest', why: expect.stringContaining('skills (SEP-2640)') },
    { side: 'client', name: 'sep-2640-client-no-prefetch', why: expect.stringContaining('skills (SEP-2640)') },
    { side: 'client', name: 'something-new', why: undefined },
  ])
})
