/** The queue without a gateway: a program asks, whoever is there answers. And the small parts: meter, log, jobs. */
import { describe, expect, it } from 'vitest'
import { fakeClock } from '../testing/clock.ts'
import { type ApprovalRequest, createApprovalQueue } from './approvals.ts'
import type { Answered, Approval } from './contract/approvals.ts'
import { LogRing } from './log-ring.ts'
import { bucketOf, Meter } from './meter.ts'

const request: ApprovalRequest = {
  kind: 'call',
  server: 'bank',
  tool: 'pay',
  text: 'Pay alice?',
  rule: 'careful',
  payload: { to: 'alice' },
}

describe('a question of a program', () => {
  it('is answered by the first, and whoever comes second learns by whom', async () => {
    const queue = createApprovalQueue()
    const asked = queue.ask(request)
    const [{ id, digest } = {} as Approval] = await queue.list().then(async list => (list.length > 0 ? list : queue.list()))
    const answers = await Promise.allSettled([
      queue.answer(id, { yes: true, digest }, { by: 'terminal' }),
      queue.answer(id, { yes: false, digest }, { by: 'page' }),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(await asked).toMatchObject({ yes: true, by: 'terminal' })
    await expect(queue.answer(id, { yes: true, digest }, { by: 'late' })).rejects.toMatchObject({
      problem: { code: 'ALREADY_ANSWERED', details: { by: 'terminal', yes: true } },
    })
    expect(await queue.find(id)).toMatchObject({ approval: { tool: 'pay' }, answered: { by: 'terminal' } })
  })

  it('is told to listeners, and is withdrawn with its signal', async () => {
    const queue = createApprovalQueue()
    const added: Approval[] = []
    const answered: Answered[] = []
    const stop = queue.subscribe({ added: each => void added.push(each), answered: each => void answered.push(each) })
    const end = new AbortController()
    const asked = queue.ask(request, end.signal)
    await expect.poll(() => added).toHaveLength(1)
    end.abort(new Error('the caller left'))
    await expect(asked).rejects.toThrow('the caller left')
    expect(answered).toMatchObject([{ id: added[0]?.id }])
    expect(answered[0]).not.toHaveProperty('yes')
    expect(await queue.list()).toEqual([])
    stop()
  })

  it.each<[string, Partial<ApprovalRequest>]>([
    ['payload', { payload: { to: 'mallory' } }],
    ['text', { text: 'Pay a little?' }],
    ['tool', { tool: 'read' }],
    ['server', { server: 'wiki' }],
  ])('has another digest where its %s is another', async (_, other) => {
    const queue = createApprovalQueue()
    void queue.ask(request)
    void queue.ask({ ...request, ...other })
    await expect.poll(() => queue.list()).toHaveLength(2)
    const [one, two] = await queue.list()
    expect(one?.digest).not.toBe(two?.digest)
    await expect(queue.answer(one?.id ?? '', { yes: true, digest: two?.digest ?? '' }, { by: 'ann' })).rejects.toMatchObject({
      problem: { code: 'DIGEST_MISMATCH' },
    })
  })
})

describe('the meter', () => {
  it('puts durations into eight buckets for each power of two', () => {
    expect([0, 0.4, 1, 1.09, 1.1, 2, 4, 1_024].map(bucketOf)).toEqual([0, 0, 1, 1, 2, 9, 17, 81])
    expect(bucketOf(Number.MAX_SAFE_INTEGER)).toBe(160)
  })

  it('adds windows up, forgets the oldest, and tells apart only so many groups', () => {
    const clock = fakeClock(1_700_000_000_000)
    const meter = new Meter(clock)
    const call = (tool: string) => meter.take({ server: 'bank', tool, client: 'ci', outcome: 'success', ms: 5 })
    for (let n = 0; n < 500; n++) call(`tool ${n}`)
    const now = meter.read({ by: 'tool', since: clock.now() - 1_000, step: undefined })
    expect(now[0]?.rows.reduce((sum, { calls }) => sum + calls, 0)).toBe(500)
    expect(now[0]?.rows.length).toBeLessThanOrEqual(201)
    clock.advance(60_000)
    call('tool 1')
    expect(meter.read({ by: 'server', since: clock.now() - 120_000, step: 60_000 }).length).toBe(2)
    clock.advance(3_700_000)
    call('tool 1')
    expect(meter.read({ by: 'server', since: clock.now() - 3_500_000, step: undefined })[0]?.rows[0]?.calls).toBe(1)
    expect(meter.read({ by: 'server', since: clock.now() - 7_200_000, step: undefined })[0]?.rows[0]?.calls).toBe(502)
  })
})

describe('the log', () => {
  it('keeps the last 20,000 lines and gives them newest first', () => {
    const ring = new LogRing(fakeClock())
    for (let n = 0; n < 30_000; n++) ring.add('info', 'line', `number ${n}`)
    const all = ring.find({}, Number.POSITIVE_INFINITY, 50_000)
    expect(all.length).toBeGreaterThanOrEqual(20_000)
    expect(all.length).toBeLessThanOrEqual(22_000)
    expect(all[0]?.text).toBe('number 29999')
    expect(ring.find({ text: 'NUMBER 29998' }, Number.POSITIVE_INFINITY, 10)).toHaveLength(1)
    expect(ring.find({ level: 'warn' }, Number.POSITIVE_INFINITY, 10)).toEqual([])
  })

  it('keeps no secret and no character that turns text, and of a server the last 200 lines', () => {
    const ring = new LogRing(fakeClock())
    ring.stderr('bank', 'api_key=sk-THISISASECRET1234567890 \u202etxet')
    const [line] = ring.find({}, Number.POSITIVE_INFINITY, 1)
    expect(line?.text).toBe('api_key=[redacted] \\u202etxet')
    for (let n = 0; n < 300; n++) ring.stderr('bank', `line ${n}`)
    expect(ring.stderrOf('bank').map(({ text }) => text)).toEqual(Array.from({ length: 200 }, (_, n) => `line ${n + 100}`))
  })
})
