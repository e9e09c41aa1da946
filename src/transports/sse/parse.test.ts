import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { SseParser } from './parse.ts'

const limits = { eventBytes: 1000, lines: 20 }
const encoder = new TextEncoder()

interface Read {
  readonly events: [data: string, type: string, lastId: string | undefined][]
  readonly lastId: string | undefined
  readonly retryMs: number | undefined
  readonly failed: string | undefined
}

/** Reads the chunks one by one; a refusal ends the reading. */
function read(chunks: readonly Uint8Array[], lastId?: string): Read {
  const events: Read['events'] = []
  const parser = new SseParser(limits, (data, type) => events.push([data, type, parser.lastId]), lastId)
  let failed: string | undefined
  try {
    for (const chunk of chunks) parser.push(chunk)
  } catch (thrown) {
    failed = thrown instanceof ConnectionError ? thrown.kind : String(thrown)
  }
  return { events, lastId: parser.lastId, retryMs: parser.retryMs, failed }
}

function readText(text: string): Read {
  return read([encoder.encode(text)])
}

function dataOf(text: string): string[] {
  return readText(text).events.map(([data]) => data)
}

describe('an event stream', () => {
  it('gives the data of an event when its blank line has come', () => {
    expect(readText('data: {"a":1}\n').events).toEqual([])
    expect(readText('data: {"a":1}\n\n').events).toEqual([['{"a":1}', '', undefined]])
  })

  it.each([
    ['LF', '\n'],
    ['CR', '\r'],
    ['CRLF', '\r\n'],
  ])('may end its lines by %s', (_name, end) => {
    expect(dataOf(`data: one${end}${end}data: two${end}${end}`)).toEqual(['one', 'two'])
  })

  it('may mix the three ways of ending a line', () => {
    expect(dataOf('data: a\r\ndata: b\rdata: c\n\r\ndata: d\n\r')).toEqual(['a\nb\nc', 'd'])
  })

  it('joins several lines of data with line feeds, empty ones too', () => {
    expect(dataOf('data: a\ndata:\ndata\ndata: b\n\n')).toEqual(['a\n\n\nb'])
  })

  it('takes away one space after the colon and no more', () => {
    expect(dataOf('data:a\n\ndata: a\n\ndata:  a\n\n')).toEqual(['a', 'a', ' a'])
  })

  it('gives an event whose data is one empty line, and none for a block without data', () => {
    expect(readText('id: 7\ndata:\n\n').events).toEqual([['', '', '7']])
    expect(readText('event: ping\n\n').events).toEqual([])
  })

  it('passes over comments and fields it does not know', () => {
    expect(dataOf(': hello\nfoo: bar\ndatas: no\ndata: yes\n:\n\n')).toEqual(['yes'])
  })

  it('names the type of an event, for that event only', () => {
    expect(
      readText('event: endpoint\ndata: /m\n\nevent: message\ndata: x\n\ndata: y\n\n').events.map(([, type]) => type),
    ).toEqual(['endpoint', '', ''])
  })

  it('skips a byte order mark at its beginning only', () => {
    expect(dataOf('\ufeffdata: \ufeffa\n\n\ufeffdata: b\n\n')).toEqual(['\ufeffa'])
  })

  it('hears the wait before reconnecting only in digits', () => {
    expect(readText('retry: 500\n').retryMs).toBe(500)
    expect(readText('retry: 500\nretry: -1\nretry: 1e9\nretry:\n').retryMs).toBe(500)
  })
})

describe('the id to continue from', () => {
  it('is that of the last complete event, and stays for events without one', () => {
    expect(readText('id: 1\ndata: a\n\ndata: b\n\n').events).toEqual([
      ['a', '', '1'],
      ['b', '', '1'],
    ])
  })

  it('is not that of an event that never came whole', () => {
    expect(readText('id: 1\ndata: a\n\nid: 2\ndata: b\n').lastId).toBe('1')
  })

  it('is set by a block without data', () => {
    expect(readText('id: 9\n\n').lastId).toBe('9')
  })

  it('begins as the one that the stream was opened with', () => {
    expect(read([encoder.encode('data: a\n\n')], 'x').lastId).toBe('x')
  })

  it('is unset by an empty one and by one that could not be sent in a header, and ignores one with NUL', () => {
    expect(readText('id: 1\n\nid:\n\n').lastId).toBeUndefined()
    expect(readText('id: 1\n\nid: \u0001\n\n').lastId).toBeUndefined()
    expect(readText('id: 1\n\nid: a\0b\n\n').lastId).toBe('1')
  })
})

describe('what is refused', () => {
  it('is an event beyond the limit of bytes, as soon as it is, complete or not (H1)', () => {
    expect(readText(`data: ${'x'.repeat(994)}\n\n`)).toMatchObject({
      failed: undefined,
      events: [[expect.any(String), '', undefined]],
    })
    expect(readText(`data: ${'x'.repeat(995)}\n\n`)).toMatchObject({ failed: 'too-large', events: [] })
    expect(read(Array.from({ length: 1001 }, () => encoder.encode('x'))).failed).toBe('too-large')
    expect(readText(`data: ${'x'.repeat(500)}\ndata: ${'x'.repeat(500)}\n`).failed).toBe('too-large')
    expect(readText(`: ${'x'.repeat(1000)}`).failed).toBe('too-large')
  })

  it('is an event of too many lines', () => {
    expect(readText(`${'data:\n'.repeat(20)}\n`).failed).toBeUndefined()
    expect(readText(`${'data:\n'.repeat(21)}\n`).failed).toBe('too-large')
  })

  it('is what is not UTF-8, and nothing of it is altered', () => {
    expect(read([Uint8Array.from([...encoder.encode('data: a'), 0xc3, 0x28, 0x0a, 0x0a])])).toMatchObject({
      failed: 'protocol',
      events: [],
    })
  })

  it('is not what stands in comments and in fields that mean nothing, whatever bytes those hold', () => {
    const bytes = [...encoder.encode('x: '), 0xff, 0x0a, 0x3a, 0xff, 0x0a, ...encoder.encode('data: a\n\n')]
    expect(read([Uint8Array.from(bytes)])).toMatchObject({ failed: undefined, events: [['a', '', undefined]] })
  })

  it('does not count comments across blank lines, so that keep-alives may go on for ever', () => {
    expect(readText(`${': keep-alive\n\n'.repeat(500)}data: a\n\n`)).toMatchObject({
      failed: undefined,
      events: [['a', '', undefined]],
    })
  })
})

describe('any chunking', () => {
  const line = fc.oneof(
    fc.constantFrom(
      '',
      '',
      'data',
      'data:',
      'data: {"id":1}',
      ': comment',
      'retry: 20',
      'event: message',
      'event: x',
      'id: 5',
      'id',
      'id: é€🙂',
    ),
    fc.string({ unit: 'grapheme', maxLength: 60 }).map(text => `data: ${text}`),
    fc.string({ unit: 'binary', maxLength: 12 }),
  )
  const stream = fc
    .array(fc.tuple(line, fc.constantFrom('\n', '\r', '\r\n')), { maxLength: 40 })
    .map(lines => encoder.encode(lines.map(([text, end]) => text + end).join('')))
  const bytes = fc.oneof(
    { weight: 4, arbitrary: stream },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }) },
    {
      weight: 1,
      arbitrary: fc
        .integer({ min: 980, max: 1020 })
        .map(n => encoder.encode(`data: a\n\ndata: ${'x'.repeat(n - 6)}\n\ndata: b\n\n`)),
    },
  )

  it('gives the same events, the same place to continue from and the same refusal', () => {
    fc.assert(
      fc.property(bytes, fc.array(fc.nat(1100), { maxLength: 30 }), (whole, cuts) => {
        const places = [0, ...cuts.map(cut => Math.min(cut, whole.length)).sort((a, b) => a - b), whole.length]
        const chunks = places.slice(1).map((end, at) => whole.subarray(places[at], end))
        expect(read(chunks)).toEqual(read([whole]))
      }),
      { numRuns: 1500 },
    )
  })

  it('of single bytes gives the same as one piece', () => {
    fc.assert(
      fc.property(stream, whole => {
        expect(read([...whole].map(byte => Uint8Array.of(byte)))).toEqual(read([whole]))
      }),
    )
  })

  it('of what a plain writer writes gives back what was written', () => {
    const event = fc.record({
      data: fc.string({ unit: 'grapheme', maxLength: 100 }).filter(text => !/[\r\n]/.test(text)),
      id: fc.nat(),
    })
    fc.assert(
      fc.property(fc.array(event, { maxLength: 20 }), written => {
        const text = written.map(({ data, id }) => `id: ${id}\ndata: ${data}\n\n`).join('')
        expect(readText(text).events).toEqual(written.map(({ data, id }) => [data, '', `${id}`]))
      }),
    )
  })
})
