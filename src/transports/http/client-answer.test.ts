import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { clientFrameLimits as limits } from '../../jsonrpc/limits.ts'
import { type Id, isRecord } from '../../jsonrpc/message.ts'
import { answerTo, isMessage } from './client-body.ts'

describe('the answer to a request', () => {
  it.each([
    ['id first', '{"jsonrpc":"2.0","id":7,"result":{}}'],
    ['an error', '{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no"}}'],
    ['result first, as the official SDK writes', '{"result":{"id":8},"jsonrpc":"2.0","id":7}'],
    ['another order', '{"id":7,"result":1,"jsonrpc":"2.0"}'],
    ['space between the tokens', '{ "jsonrpc": "2.0",\n "id": 7, "result": {} }'],
    ['an escaped key', '{"jsonrpc":"2.0","id":7,"re\\u0073ult":{}}'],
    ['another spelling of the number', '{"jsonrpc":"2.0","id":7.0,"result":{}}'],
    ['an array that holds it (rev B §1.1)', '[{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":7,"result":{}}]'],
  ])('is known by its id: %s', (_name, text) => {
    expect(answerTo(text, 7, limits)).toBe(text)
  })

  it.each([
    ['an id of another type (H3)', '{"jsonrpc":"2.0","id":"7","result":{}}'],
    ['an id that begins alike', '{"jsonrpc":"2.0","id":77,"result":{}}'],
    ['another id at the end', '{"result":{},"jsonrpc":"2.0","id":17}'],
    ['a request of the server under the same id', '{"method":"ping","jsonrpc":"2.0","id":7}'],
    ['the same, id first', '{"jsonrpc":"2.0","id":7,"method":"ping"}'],
    ['a notification', '{"jsonrpc":"2.0","method":"notifications/message","params":{"id":7,"result":{}}}'],
    ['the shape of an answer inside a result', '{"result":{"a":{"x":1,"jsonrpc":"2.0","id":7}},"jsonrpc":"2.0","id":8}'],
    ['neither a result nor an error', '{"jsonrpc":"2.0","id":7}'],
    ['no JSON', '{"jsonrpc":"2.0","id":7'],
  ])('is not: %s', (_name, text) => {
    expect(answerTo(text, 7, limits)).toBeUndefined()
  })

  it.each([
    '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"bad"}}',
    '{"error":{"code":-32700,"message":"bad"},"jsonrpc":"2.0"}',
  ])('may be an error without an id, which then gets the one of its exchange (trap 8): %s', text => {
    expect(JSON.parse(answerTo(text, 'a"b', limits) ?? '')).toEqual({
      jsonrpc: '2.0',
      id: 'a"b',
      error: { code: -32700, message: 'bad' },
    })
  })

  it('is told as a full parse would tell it, whatever the order of the members', () => {
    const id = fc.oneof(fc.integer(), fc.string({ unit: 'grapheme', maxLength: 8 }), fc.constant('__proto__'))
    const member = fc.oneof(
      fc.constant(['jsonrpc', '2.0']),
      id.map(value => ['id', value]),
      fc.json({ maxDepth: 2 }).map(text => ['result', JSON.parse(text)]),
      fc.constant(['error', { code: 1, message: 'x' }]),
      fc.constant(['method', 'x']),
    )
    fc.assert(
      fc.property(fc.uniqueArray(member, { selector: ([name]) => name }), id, fc.boolean(), (members, asked: Id, own) => {
        const message: Record<string, unknown> = Object.fromEntries(members)
        if (own && 'id' in message) message['id'] = asked
        // Both an answer and a request: malformed, and may be taken for either.
        fc.pre(!('method' in message && ('result' in message || 'error' in message)))
        const expected = message['id'] === asked && !('method' in message) && ('result' in message || 'error' in message)
        const orphan = !('id' in message) && !('method' in message) && isRecord(message['error'])
        expect(answerTo(JSON.stringify(message), asked, limits) !== undefined).toBe(expected || orphan)
      }),
      { numRuns: 1000 },
    )
  })
})

describe('a JSON body under an error status', () => {
  it('is a message only with the envelope', () => {
    expect(isMessage('{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}', limits)).toBe(true)
    expect(isMessage('{"error":"invalid_token"}', limits)).toBe(false)
    expect(isMessage('[]', limits)).toBe(false)
    expect(isMessage('<html>', limits)).toBe(false)
  })
})
