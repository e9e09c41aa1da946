/** The event stream: what it begins with, what it tells, how it resumes, and what it costs to be slow. */
import { request } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { consoleWorld } from '../../test/console/gateway-console.ts'
import { upstreamOf } from '../../test/gateway/world.ts'
import { fakeClock } from '../testing/clock.ts'
import type { ConsoleEvents } from './contract/events.ts'
import type { RunningConsole } from './serve.ts'

interface Told {
  readonly event: string
  readonly id: string | undefined
  readonly data: Readonly<Record<string, unknown>>
}

/** Reads the stream, and gathers what it tells. `paused`: reads nothing. */
async function read({ port }: RunningConsole, cookie: string, { topics = '', last = '', paused = false } = {}) {
  const told: Told[] = []
  let ended = false
  const query = topics === '' ? '' : `?topics=${topics}`
  const headers = { host: `127.0.0.1:${port}`, cookie, ...(last !== '' && { 'last-event-id': last }) }
  const sent = request({ host: '127.0.0.1', port, path: `/api/1/events${query}`, headers })
  onTestFinished(() => void sent.destroy())
  const answer = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
    sent.on('response', resolve).on('error', reject).end()
  })
  let text = ''
  const take = (part: string): void => {
    text += part
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const lines = new Map(
        text
          .slice(0, end)
          .split('\n')
          .map(line => line.split(/: (.*)/s, 2) as [string, string]),
      )
      text = text.slice(end + 2)
      const event = lines.get('event')
      if (event !== undefined)
        told.push({ event, id: lines.get('id'), data: JSON.parse(lines.get('data') ?? '') as Told['data'] })
    }
  }
  answer.setEncoding('utf8')
  answer.on('close', () => {
    ended = true
  })
  answer.on('error', () => {})
  if (!paused) answer.on('data', take)
  return {
    status: answer.statusCode,
    told,
    ended: () => ended,
    of: (name: keyof ConsoleEvents) => told.filter(({ event }) => event === name),
    resume: () => answer.on('data', take),
    leave: () => sent.destroy(),
  }
}

const ask = { name: 'careful', tool: 'pay', do: 'ask', by: 'operator' } as const

describe('the stream', () => {
  it('an approval that was listed and answered before anybody read the stream is told as answered, and found', async () => {
    const { page, client, gateway, console: running } = await consoleWorld({ servers: { bank: upstreamOf() }, rules: [ask] })
    const me = await page()
    await client.callTool('pay', {})
    const { id } = await me.waiting()
    await gateway.refuse(id, 'terminal')
    expect(await me.get(`/approvals/${id}`)).toMatchObject({ status: 200, body: { answered: { yes: false, by: 'terminal' } } })
    const stream = await read(running, me.cookie)
    await expect.poll(() => stream.of('answered')).toMatchObject([{ data: { id, yes: false, by: 'terminal' } }])
    expect(stream.of('approval')).toEqual([])
  })

  it('an approval that the terminal answers is found all the while, first as waiting, then as answered', async () => {
    const { page, client, gateway, console: running } = await consoleWorld({ servers: { bank: upstreamOf() }, rules: [ask] })
    const me = await page()
    const stream = await read(running, me.cookie)
    await client.callTool('pay', {})
    const { id } = await me.waiting()
    await expect.poll(() => stream.of('approval')).toHaveLength(1)
    await gateway.refuse(id, 'terminal')
    expect(await me.get(`/approvals/${id}`)).toMatchObject({
      status: 200,
      body: { approval: { tool: 'pay' }, answered: { yes: false, by: 'terminal' } },
    })
    await expect.poll(() => stream.of('answered')).toMatchObject([{ data: { id, by: 'terminal' } }])
  })

  it('begins with the process, and tells calls, approvals, answers and lines of the log', async () => {
    const { page, console: running, client, observe } = await consoleWorld({ servers: { bank: upstreamOf() }, rules: [ask] })
    const me = await page()
    const stream = await read(running, me.cookie)
    await expect
      .poll(() => stream.told[0])
      .toMatchObject({ event: 'hello', data: { self: { kind: 'gateway', session: { by: 'ann' } } } })
    await client.callTool('read', {})
    await client.callTool('pay', { to: 'alice' })
    observe.options.onStderr?.('bank', 'warming up')
    await expect.poll(() => stream.of('approval')).toMatchObject([{ data: { tool: 'pay', payload: { to: 'alice' } } }])
    await expect
      .poll(() => stream.of('log'))
      .toContainEqual(expect.objectContaining({ data: expect.objectContaining({ text: 'warming up' }) }))
    await expect.poll(() => stream.of('traffic').length).toBeGreaterThan(0)
    expect(stream.of('audit')).toContainEqual(
      expect.objectContaining({ data: expect.objectContaining({ target: 'read', outcome: 'success' }) }),
    )
    const { id, digest } = await me.waiting()
    await me.post(`/approvals/${id}`, { yes: false, digest })
    await expect.poll(() => stream.of('answered')).toMatchObject([{ data: { id, yes: false, by: 'ann' } }])
  })

  it('tells an answer that was given elsewhere, with who gave it', async () => {
    const { page, console: running, client, gateway } = await consoleWorld({ servers: { bank: upstreamOf() }, rules: [ask] })
    const me = await page()
    await client.callTool('pay', {})
    const stream = await read(running, me.cookie)
    const { id } = await me.waiting()
    await client.callTool('pay', { second: true })
    await expect.poll(() => stream.of('approval')).toHaveLength(1)
    await gateway.approve(id, 'terminal')
    await expect.poll(() => stream.of('answered')).toMatchObject([{ data: { id, yes: true, by: 'terminal' } }])
  })

  it('tells a viewer of approvals without their arguments', async () => {
    const { page, console: running, client } = await consoleWorld({ servers: { bank: upstreamOf() }, rules: [ask] })
    const stream = await read(running, (await page({ roles: ['viewer'] })).cookie, { topics: 'approval' })
    await expect.poll(() => stream.told).toHaveLength(1)
    await client.callTool('pay', { plan: 'plan-b' })
    await expect.poll(() => stream.of('approval')).toHaveLength(1)
    expect(JSON.stringify(stream.told)).not.toContain('plan-b')
  })

  it('tells only what was asked for, and no topic that does not exist', async () => {
    const { page, console: running, client, observe } = await consoleWorld({ servers: { bank: upstreamOf() } })
    const { cookie } = await page()
    const stream = await read(running, cookie, { topics: 'log' })
    await client.callTool('read', {})
    observe.options.onStderr?.('bank', 'done')
    await expect.poll(() => stream.of('log')).toHaveLength(1)
    expect(stream.of('audit')).toEqual([])
    expect((await read(running, cookie, { topics: 'frames' })).status).toBe(400)
  })

  it('ends with its session', async () => {
    const { page, console: running } = await consoleWorld({})
    const me = await page()
    const stream = await read(running, me.cookie)
    await me.remove('/session')
    await expect.poll(() => stream.ended()).toBe(true)
  })

  it('is refused to a session without the role to read, and to the 17th reader', async () => {
    const { page, console: running } = await consoleWorld({})
    expect((await read(running, (await page({ roles: ['approver'] })).cookie)).status).toBe(403)
    const { cookie } = await page()
    for (let n = 0; n < 16; n++) expect((await read(running, cookie)).status).toBe(200)
    expect((await read(running, cookie)).status).toBe(429)
  })
})

describe('a reader that was cut off', () => {
  it('gets what it missed, once and in order', async () => {
    const { page, console: running, observe } = await consoleWorld({})
    const { cookie } = await page()
    const first = await read(running, cookie, { topics: 'log' })
    observe.options.onStderr?.('bank', 'one')
    await expect.poll(() => first.of('log')).toHaveLength(1)
    first.leave()
    for (const text of ['two', 'three']) observe.options.onStderr?.('bank', text)
    const again = await read(running, cookie, { topics: 'log', last: first.of('log')[0]?.id ?? '' })
    await expect.poll(() => again.of('log').map(({ data }) => data['text'])).toEqual(['two', 'three'])
    expect(again.of('lost')).toEqual([])
  })

  it.each(['another-start.7', 'nonsense', '0'])('learns that events were lost, from %s on', async last => {
    const { page, console: running } = await consoleWorld({})
    const stream = await read(running, (await page()).cookie, { last })
    await expect.poll(() => stream.told.map(({ event }) => event)).toEqual(['hello', 'lost'])
  })

  it('learns it too when the ring has gone on without it, and when nobody read for a minute', async () => {
    const clock = fakeClock()
    const { page, console: running, observe } = await consoleWorld({}, { clock })
    const { cookie } = await page()
    const first = await read(running, cookie, { topics: 'log' })
    const other = await read(running, cookie, { topics: 'log' })
    observe.options.onStderr?.('bank', 'one')
    await expect.poll(() => first.of('log')).toHaveLength(1)
    const last = first.of('log')[0]?.id ?? ''
    first.leave()
    for (let n = 0; n < 10_001; n++) {
      observe.options.onStderr?.('bank', `line ${n}`)
      // Whoever reads at all keeps up with as much as fits into its queue.
      if (n % 1_000 === 0) await expect.poll(() => other.of('log').length).toBe(n + 2)
    }
    await expect.poll(() => other.of('log').length).toBe(10_002)
    const late = await read(running, cookie, { topics: 'log', last })
    await expect.poll(() => late.told.map(({ event }) => event)).toEqual(['hello', 'lost'])
    const newest = other.of('log').at(-1)?.id ?? ''
    for (const each of [other, late]) each.leave()
    const later = async (): Promise<readonly string[]> => {
      clock.advance(60_001)
      const stream = await read(running, cookie, { topics: 'log', last: newest })
      await expect.poll(() => stream.told.length).toBeGreaterThan(0)
      stream.leave()
      return stream.told.map(({ event }) => event)
    }
    await expect.poll(later).toEqual(['hello', 'lost'])
  })

  it('that reads nothing costs a bounded amount, and is told what it lost when it reads again', async () => {
    const { page, console: running, observe } = await consoleWorld({})
    const { cookie } = await page()
    const slow = await read(running, cookie, { topics: 'log', paused: true })
    for (let n = 0; n < 10_000; n++) observe.options.onStderr?.('bank', `${n} ${'x'.repeat(3_000)}`)
    slow.resume()
    await expect.poll(() => slow.of('lost')).toHaveLength(1)
    expect(slow.of('log').length).toBeLessThan(5_000)
    observe.options.onStderr?.('bank', 'after that')
    await expect.poll(() => slow.of('log').at(-1)?.data['text']).toBe('after that')
  })
})
