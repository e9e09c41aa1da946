import { describe, expect, it } from 'vitest'
import { McpError } from '../jsonrpc/error.ts'
import { checkLogOption, createLog, type Level, type LogOptions, traceInto } from './log.ts'

const clock = { now: () => Date.UTC(2026, 0, 2), setTimeout: () => () => {} }

function logging(options: LogOptions = {}) {
  const lines: string[] = []
  return { lines, log: createLog({ clock, write: line => lines.push(line), ...options }) }
}

describe('a log', () => {
  it('writes one JSON object a line', () => {
    const { log, lines } = logging({ format: 'json' })
    log.child({ server: 'a' }).warn('late', { ms: 12, token: 'x', event: 'other' })
    expect(lines.map(line => JSON.parse(line))).toEqual([
      { time: '2026-01-02T00:00:00.000Z', level: 'warn', event: 'late', server: 'a', ms: 12, token: '[redacted]' },
    ])
  })

  it('writes text for people, the frames of a stack below', () => {
    const { log, lines } = logging()
    const error = Object.assign(new TypeError('no\u001b[2J\nvivarium error forged'), { code: 'E_X' })
    log.error('tool-failed', { tool: 'a b', error })
    const [first, ...frames] = lines.join().split('\n')
    expect(first).toBe(
      String.raw`2026-01-02T00:00:00.000Z vivarium error tool-failed tool="a b" error="TypeError: no\u001b[2J\nvivarium error forged" (code E_X)`,
    )
    expect(frames.length).toBeGreaterThan(0)
    for (const frame of frames) expect(frame).toMatch(/^ {4}at /)
  })

  it.each([
    ['debug', 4],
    ['info', 3],
    ['warn', 2],
    ['error', 1],
    ['silent', 0],
  ] as const)('at level %s writes %i of the four', (level, count) => {
    const { log, lines } = logging({ level })
    for (const severity of ['debug', 'info', 'warn', 'error'] as const) log[severity]('x')
    expect(lines).toHaveLength(count)
  })

  it('does not look at the fields of what it leaves out', () => {
    const fields = new Proxy({}, { ownKeys: () => expect.unreachable('looked') })
    logging({ level: 'info' }).log.debug('x', fields)
  })

  it('leaves out what comes too fast, and counts it', () => {
    let now = 0
    const { log, lines } = logging({ format: 'json', clock: { ...clock, now: () => now } })
    for (let n = 0; n < 5_000; n++) log.info('x')
    expect(lines).toHaveLength(1_000)
    now = 1_000
    log.info('y')
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ event: 'y', dropped: 4_000 })
  })

  it('refuses a level that is none, and a log that lacks a method', () => {
    expect(() => createLog({ level: 'loud' as Level })).toThrow('level is loud: give debug, info, warn, error, silent')
    expect(() => checkLogOption({ debug() {} })).toThrow('no method info')
    expect(() => checkLogOption('loud')).toThrow('give debug, info, warn, error, silent')
  })
})

describe('what the engine traces', () => {
  const told = (event: string, detail: unknown) => {
    const { log, lines } = logging({ level: 'debug', format: 'json' })
    traceInto(log, { mistakes: new Set(['broken']) })(event, detail)
    return JSON.parse(lines[0] ?? '') as Record<string, unknown>
  }

  it('is an error where it is a mistake of ours, a warning where something broke, and else just said', () => {
    expect(told('broken', new Error('x'))['level']).toBe('error')
    expect(told('broken', { tool: 'a', error: new Error('x') })['level']).toBe('error')
    expect(told('broken', new McpError('remote', 'on purpose'))['level']).toBe('info')
    expect(told('broken', new McpError('internal', 'x', { cause: new Error('y') }))['level']).toBe('error')
    expect(told('lost', new Error('x'))['level']).toBe('warn')
    expect(told('unknown', 'a/b')).toMatchObject({ level: 'info', detail: 'a/b' })
  })

  it('is told without the credentials of the caller, however they are repeated', () => {
    const { log, lines } = logging({ format: 'json' })
    const headers = new Map([
      ['authorization', 'Bearer opaque4711'],
      ['cookie', 'a=b; sid=crumb0815'],
    ])
    const caller = { carrier: 'http' as const, connection: {}, header: (name: string) => headers.get(name) }
    traceInto(log, { mistakes: new Set(['broken']) })('broken', new Error('opaque4711 and crumb0815 are not welcome'), caller)
    expect(lines.join()).toContain('[redacted] and [redacted] are not welcome')
    expect(lines.join()).not.toMatch(/4711|0815/)
  })

  it('reaches a log of one’s own with clean fields, and only what its level wants', () => {
    const records: unknown[] = []
    const own = {
      level: 'warn',
      debug: () => records.push('debug'),
      info: () => records.push('info'),
      warn: (event: string, fields?: object) => records.push([event, fields]),
      error: () => records.push('error'),
      child: () => own,
    }
    const trace = traceInto(own, { mistakes: new Set(), secrets: ['hush-hush'] })
    trace('said', 'x')
    trace('lost', { error: new Error('x'), token: 'y', note: 'hush-hush\n' })
    expect(records).toMatchObject([['lost', { token: '[redacted]', note: '[redacted]\\n' }]])
  })
})
