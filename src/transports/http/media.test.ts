import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isJson, takes, takesJson, takesStream } from './endpoint.ts'

const both = takesJson | takesStream

describe('Content-Type', () => {
  it.each([
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/json ; x=y',
  ])('takes %s as JSON', type => {
    expect(isJson(type)).toBe(true)
  })

  it.each([
    undefined,
    '',
    'text/plain',
    'text/plain; application/json',
    'application/jsonp',
    'application/json-rpc',
    'xapplication/json',
    'application/json, text/plain',
    'application/json; charset=utf-16',
    'multipart/form-data; boundary=application/json',
  ])('does not take %s as JSON', type => {
    expect(isJson(type)).toBe(false)
  })
})

describe('Accept', () => {
  it.each([
    [undefined, both],
    ['', both],
    ['*/*', both],
    ['application/json, text/event-stream', both],
    ['TEXT/EVENT-STREAM , Application/*', both],
    ['application/json', takesJson],
    ['text/event-stream', takesStream],
    ['text/*;q=0.5', takesStream],
    ['text/html', 0],
    ['application/json;q=0', 0],
    ['application/json;q=0, */*', takesStream],
    ['*/*;q=0', 0],
    ['text/event-stream;q=0.0, application/json; q=1', takesJson],
    ['text/html, */*;q=0.8', both],
  ])('%s lets through %i', (accept, expected) => {
    expect(takes(accept)).toBe(expected)
  })

  it('never fails, whatever the text', () => {
    fc.assert(
      fc.property(fc.string(), text => {
        expect([0, takesJson, takesStream, both]).toContain(takes(text))
      }),
    )
  })
})
