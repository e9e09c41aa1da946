import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { McpError } from '../jsonrpc/error.ts'
import { cleanFields, cleanText } from './log.ts'
import { redacted } from './redact.ts'

describe('the fields of a record', () => {
  it('lose what stands under the name of a secret, at any depth', () => {
    const headers = new Headers({ authorization: 'Bearer abc', accept: 'a/b' })
    const fields = { a: { access_token: 'abc', list: [{ password: 1234 }] }, cookie: ['x'], headers }
    expect(cleanFields(fields)).toEqual({
      a: { access_token: redacted, list: [{ password: redacted }] },
      cookie: redacted,
      headers: { accept: 'a/b', authorization: redacted },
    })
  })

  it('name the variables of an environment and none of their values', () => {
    expect(cleanFields({ spawn: { command: 'x', env: { A: '1', B_TOKEN: '2' } } })).toEqual({
      spawn: { command: 'x', env: ['A', 'B_TOKEN'] },
    })
  })

  it('keep the code of an error and lose that of a grant', () => {
    expect(cleanFields({ code: 'ECONNRESET', state: 'open' })).toEqual({ code: 'ECONNRESET', state: 'open' })
    expect(cleanFields({ code: 'SplxlOBeZQQYbYS6WxSbIA', state: 'af0ifjsldkj4' })).toEqual({ code: redacted, state: redacted })
    expect(cleanFields({ code: -32602 })).toEqual({ code: -32602 })
  })

  it('hold an error by its name, words, code, frames and causes', () => {
    const cause = Object.assign(new TypeError('token=abc\n    at forged (x.ts:1:1)'), { code: 'EPIPE', request: { secret: 1 } })
    const { error } = cleanFields({ error: new McpError('internal', 'It failed', { cause }) }) as {
      error: Record<string, unknown>
    }
    expect(error).toMatchObject({ name: 'McpError', kind: 'internal', message: 'It failed' })
    expect(error['cause']).toMatchObject({
      name: 'TypeError',
      message: `token=${redacted}\\n    at forged (x.ts:1:1)`,
      code: 'EPIPE',
      stack: expect.not.arrayContaining([expect.stringContaining('forged')]),
    })
    expect(JSON.stringify(error)).not.toContain('request')
    expect(error['stack']).toEqual(expect.arrayContaining([expect.stringMatching(/^at .*log-fields\.test\.ts/)]))
  })

  it('are few, short and shallow, whatever is given', () => {
    let deep: unknown = 0
    for (let n = 0; n < 10_000; n++) deep = { in: deep }
    const fields = { deep, long: 'x'.repeat(1e6), many: Array.from({ length: 1e5 }, (_, n) => n), self: {} as unknown }
    fields.self = fields
    expect(JSON.stringify(cleanFields(fields)).length).toBeLessThan(8_000)
  })

  it('are given up where they cannot be read', () => {
    const broken = Object.defineProperty({}, 'x', {
      enumerable: true,
      get: () => {
        throw new Error('no')
      },
    })
    expect(cleanFields(broken)).toEqual({ unreadable: true })
  })

  it('hold no control, line break, direction mark or half character of anything foreign, and cleaning twice is once', () => {
    // Half of them from where the controls are, the other half from everywhere, halves of characters included.
    const text = fc
      .oneof(fc.uint8Array({ maxLength: 20 }), fc.uint16Array({ maxLength: 20 }))
      .map(units => String.fromCharCode(...units))
    const foreign = fc.anything({ key: text, values: [text, fc.double(), fc.boolean()] })
    fc.assert(
      fc.property(text, foreign, (words, value) => {
        const strings = stringsIn(cleanFields({ words, value }))
        expect(strings.filter(each => unclean.test(each))).toEqual([])
        expect(strings.map(each => cleanText(each))).toEqual(strings)
      }),
      { numRuns: 500 },
    )
  })
})

const unclean = /[\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, each]) => [name, ...stringsIn(each)])
}
