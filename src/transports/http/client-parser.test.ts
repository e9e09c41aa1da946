import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { HttpResponseParser } from './client-parser.ts'

interface Cut {
  status: number
  body: string
  ended: boolean
  holds: boolean
}

/** What comes of an answer in these pieces; `close`: the socket ends behind them. */
function cut(pieces: readonly string[], close = false): Cut | string {
  const out: Cut = { status: 0, body: '', ended: false, holds: false }
  const cutter = new HttpResponseParser({
    head: ({ status }) => {
      out.status = status
    },
    data: bytes => {
      out.body += bytes.toString('latin1')
    },
    end: () => {
      out.ended = true
    },
  })
  try {
    for (const piece of pieces) cutter.push(Buffer.from(piece, 'latin1'))
    if (close) cutter.close()
  } catch (error) {
    if (error instanceof ConnectionError) return error.kind
    throw error
  }
  return { ...out, holds: cutter.holds }
}

const fine = (body: string, status = 200): Cut => ({ status, body, ended: true, holds: false })

describe('an answer', () => {
  it.each([
    ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi', fine('hi')],
    ['chunks', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;x=y\r\nhi\r\n0\r\n\r\n', fine('hi')],
    ['chunks and trailers', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\na: b\r\n\r\n', fine('x')],
    ['no body', 'HTTP/1.1 204 No Content\r\n\r\n', fine('', 204)],
    ['something before it', 'HTTP/1.1 103 Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx', fine('x')],
    ['the same length twice', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\nx', fine('x')],
  ])('with %s is cut out whole, in whatever pieces it comes', (_, text, expected) => {
    expect(cut([text])).toEqual(expected)
    expect(cut([...text])).toEqual(expected)
  })

  it('that says no length is as long as its socket lasts', () => {
    expect(cut(['HTTP/1.1 200 OK\r\n\r\nhi'], true)).toEqual(fine('hi'))
    expect(cut(['HTTP/1.1 200 OK\r\n\r\nhi'])).toMatchObject({ ended: false })
  })

  it.each([
    ['a length and chunks', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n', 'protocol'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n', 'protocol'],
    ['two lengths in one', 'HTTP/1.1 200 OK\r\ncontent-length: 1, 2\r\n\r\n', 'protocol'],
    ['a length with a sign', 'HTTP/1.1 200 OK\r\ncontent-length: +1\r\n\r\n', 'protocol'],
    ['a folded line', 'HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n', 'protocol'],
    ['a blank before the colon', 'HTTP/1.1 200 OK\r\na : b\r\n\r\n', 'protocol'],
    ['another coding', 'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n', 'protocol'],
    ['a size that is none', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0x2\r\nhi\r\n', 'protocol'],
    ['a chunk longer than it says', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nhi\r\n', 'protocol'],
    ['an endless line between chunks', `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${'0'.repeat(2_000)}`, 'protocol'],
    ['an endless head', `HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(10_000)}`, 'too-large'],
    ['bare line feeds for ever', `HTTP/1.1 200 OK\n\n${'x'.repeat(20_000)}`, 'too-large'],
    ['another version', 'HTTP/2 200 OK\r\n\r\n', 'protocol'],
    ['no HTTP', 'SSH-2.0\r\n\r\n', 'protocol'],
    ['a switch of protocols', 'HTTP/1.1 101 Switching\r\n\r\n', 'lost'],
  ])('with %s is refused', (_, text, kind) => {
    expect(cut([text])).toBe(kind)
  })

  it('that ends too early is lost', () => {
    for (const text of [
      'HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nhi',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n',
    ])
      expect(cut([text], true)).toBe('lost')
  })

  it('holds what comes behind its end, so that nobody takes it for another one', () => {
    expect(cut(['HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n'])).toMatchObject({ body: 'x', holds: true })
  })

  it('is the same in any pieces, whatever it holds', () => {
    const bodies = fc.array(fc.string({ unit: 'binary-ascii', minLength: 1 }), { maxLength: 5 })
    fc.assert(
      fc.property(bodies, fc.array(fc.nat(400)), (parts, cuts) => {
        const chunks = parts.map(part => `${part.length.toString(16)}\r\n${part}\r\n`).join('')
        const text = `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`
        const at = [...new Set([0, ...cuts.filter(each => each < text.length), text.length])].sort((a, b) => a - b)
        const pieces = at.slice(1).map((end, i) => text.slice(at[i], end))
        expect(cut(pieces)).toEqual(fine(parts.join('')))
      }),
    )
  })
})
