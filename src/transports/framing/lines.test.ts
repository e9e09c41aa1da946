import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { FrameFault } from '../../jsonrpc/connection.ts'
import { Lines } from './lines.ts'

type Event = string | FrameFault['kind']

/** Runs the chunks through fresh lines and lists frames (quoted) and kinds of faults in their order. */
function cut(chunks: readonly Buffer[], limit = 1000): Event[] {
  const events: Event[] = []
  const lines = new Lines({ frame: text => events.push(`"${text}"`), fault: fault => events.push(fault.kind) }, limit)
  for (const chunk of chunks) lines.push(chunk)
  lines.end()
  return events
}

/** The same by the plainest means, for comparison: the whole stream at hand, line by line. */
function expected(bytes: Buffer, limit: number): Event[] {
  const events: Event[] = []
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  for (let start = 0, end = 0; start < bytes.length; start = end + 1) {
    end = bytes.indexOf(0x0a, start)
    if (end === -1) end = bytes.length
    const line = bytes.subarray(start, end)
    if (line.length > limit) events.push('too-large')
    else {
      try {
        const text = decoder.decode(line).replace(/\r$/, '')
        if (!/^[ \t\r]*$/.test(text)) events.push(`"${text}"`)
      } catch {
        events.push('not-utf8')
      }
    }
  }
  return events
}

function split(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = []
  let at = 0
  for (const size of sizes) {
    chunks.push(bytes.subarray(at, at + size))
    at += size
  }
  chunks.push(bytes.subarray(at))
  return chunks
}

const piece = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: 'grapheme', maxLength: 12 }).map(text => Buffer.from(text)) },
  { weight: 3, arbitrary: fc.constantFrom(...['\n', '\r\n', '\n\n', ' \t\n'].map(text => Buffer.from(text))) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 4 }).map(bytes => Buffer.from(bytes)) },
  { weight: 1, arbitrary: fc.integer({ min: 20, max: 60 }).map(length => Buffer.alloc(length, 'x')) },
)
const stream = fc.array(piece, { maxLength: 30 }).map(pieces => Buffer.concat(pieces))
const sizes = fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 40 })

describe('Lines', () => {
  it('skips lines of JSON white space alone, and takes a line of any other blanks for a frame', () => {
    expect(cut([Buffer.from('\n \t\n\r\n \r\r\n')])).toEqual([])
    for (const blank of ['\u2000', '\ufeff', '\u2028', ' \u00a0', '\v', ' \f']) {
      expect(cut([Buffer.from(`${blank}\n`)])).toEqual([`"${blank}"`])
    }
  })

  it('gives the same frames and faults for any way of cutting the stream into chunks', () => {
    fc.assert(
      fc.property(stream, sizes, fc.integer({ min: 1, max: 40 }), (bytes, chunks, limit) => {
        expect(cut(split(bytes, chunks), limit)).toEqual(expected(bytes, limit))
      }),
      { numRuns: 1000 },
    )
  })

  it('gives the same frames when it is paused and resumed at every frame', () => {
    fc.assert(
      fc.property(stream, sizes, (bytes, chunks) => {
        const events: Event[] = []
        const note = (event: Event) => {
          events.push(event)
          lines.pause()
        }
        const lines = new Lines({ frame: text => note(`"${text}"`), fault: fault => note(fault.kind) }, 25)
        for (const chunk of split(bytes, chunks)) lines.push(chunk)
        lines.end()
        for (let seen = -1; seen < events.length; lines.resume()) seen = events.length
        expect(events).toEqual(expected(bytes, 25))
      }),
    )
  })

  it('joins characters that were split between chunks, byte by byte', () => {
    const bytes = Buffer.from('{"t":"ä€漢🙂"}\n')
    expect(cut(split(bytes, new Array<number>(bytes.length).fill(1)))).toEqual(['"{"t":"ä€漢🙂"}"'])
  })

  it('takes lines that end in CR LF and passes over blank lines', () => {
    expect(cut([Buffer.from('\n{}\r\n\r\n  \n\t\r\n[1]\n')])).toEqual(['"{}"', '"[1]"'])
  })

  it('takes a line of exactly the limit and refuses one byte more', () => {
    expect(cut([Buffer.from('12345\n123456\n1234\n')], 5)).toEqual(['"12345"', 'too-large', '"1234"'])
  })

  it('counts the limit in bytes, not in characters', () => {
    expect(cut([Buffer.from('€€\n€€€\n')], 6)).toEqual(['"€€"', 'too-large'])
  })

  it('refuses a line of five mebibytes once, without its end in sight, and serves the next line', () => {
    const chunk = Buffer.alloc(64 * 1024, 'x')
    const events: Event[] = []
    const sink = { frame: (text: string) => events.push(text), fault: (fault: FrameFault) => events.push(fault.kind) }
    const lines = new Lines(sink, 4 * 1024 * 1024)
    for (let at = 0; at < 80; at++) lines.push(chunk)
    expect(events).toEqual(['too-large'])
    lines.push(Buffer.from('the end of it\n{"next":1}\n'))
    expect(events).toEqual(['too-large', '{"next":1}'])
  })

  it('blames only the line that is not UTF-8', () => {
    const bad = Buffer.concat([Buffer.from('{"a":"ö"}\n{"b":"'), Buffer.of(0xff, 0xfe), Buffer.from('"}\n{"c":3}\n')])
    expect(cut([bad])).toEqual(['"{"a":"ö"}"', 'not-utf8', '"{"c":3}"'])
  })

  it('keeps a line that comes byte by byte in few pieces and gives it whole', () => {
    const line = 'abcdefghij'.repeat(1000)
    const chunks = Array.from(`${line}\n`, letter => Buffer.from(letter))
    expect(cut(chunks, 10_000)).toEqual([`"${line}"`])
  })

  it('delivers nothing between pause and resume, not even from the chunk in hand', () => {
    const frames: string[] = []
    const sink = {
      frame(text: string) {
        frames.push(text)
        if (text === '2') lines.pause()
      },
      fault: () => {},
    }
    const lines = new Lines(sink, 100)
    lines.push(Buffer.from('1\n2\n3\n'))
    lines.push(Buffer.from('4\n'))
    expect(frames).toEqual(['1', '2'])
    lines.resume()
    expect(frames).toEqual(['1', '2', '3', '4'])
  })

  it('keeps the order when it is resumed from within the sink', () => {
    const frames: string[] = []
    const sink = {
      frame(text: string) {
        lines.pause()
        lines.resume()
        frames.push(text)
      },
      fault: () => {},
    }
    const lines = new Lines(sink, 100)
    lines.push(Buffer.from('1\n2\n3\n'))
    expect(frames).toEqual(['1', '2', '3'])
  })
})

describe('Lines: whose answer a line was that is refused', () => {
  const refusedBy = (line: string, cut: number): unknown => {
    const faults: unknown[] = []
    const lines = new Lines({ frame: () => {}, fault: ({ answers }) => faults.push(answers ?? 'nobody') }, 100, true)
    const bytes = Buffer.from(`${line}\n{"next":1}\n`)
    for (let at = 0; at < bytes.length; at += cut) lines.push(bytes.subarray(at, at + cut))
    return faults
  }
  const long = 'x'.repeat(300)
  const cases: readonly (readonly [string, string, unknown])[] = [
    ['an id before the result', `{"jsonrpc":"2.0","id":7,"result":{"text":"${long}"}}`, { id: 7 }],
    ['an id that is a text', ` { "id" : "a\\"b" , "result":{"id":9,"text":"${long}"}}`, { id: 'a"b' }],
    ['an id behind the result', `{"result":{"text":"\\"id\\":1}${long}"},"jsonrpc":"2.0","id":12}`, { id: 12 }],
    ['an id behind it, but not last', `{"result":{"text":"${long}"},"id":"x", "jsonrpc":"2.0" }`, { id: 'x' }],
    ['an id inside the result alone', `{"result":{"text":"${long}","id":3}}`, 'any'],
    ['a batch', `[{"id":1,"result":{"text":"${long}"}}]`, 'any'],
    ['a notification', `{"jsonrpc":"2.0","method":"notifications/message","params":{"text":"${long}"}}`, 'nobody'],
    ['a request of its own', `{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"text":"${long}"}}`, 'nobody'],
    ['noise', long, 'nobody'],
  ]
  it.each(cases)('is told of %s, however the bytes come', (_, line, answers) => {
    for (const cut of [1, 7, 64, 150, 100_000]) expect([cut, refusedBy(line, cut)]).toEqual([cut, [answers]])
  })

  it('is told before the end of a line that has none', () => {
    const faults: unknown[] = []
    const lines = new Lines({ frame: () => {}, fault: ({ answers }) => faults.push(answers) }, 100, true)
    for (let at = 0; at < 20; at++) lines.push(Buffer.from(`{"result":"${long}`))
    expect(faults).toEqual(['any'])
  })

  it('is told of a line that is not UTF-8', () => {
    const faults: unknown[] = []
    const lines = new Lines({ frame: () => {}, fault: ({ kind, answers }) => faults.push([kind, answers]) }, 100, true)
    lines.push(Buffer.concat([Buffer.from('{"id":4,"result":"'), Buffer.of(0xc3, 0x28), Buffer.from('"}\n')]))
    expect(faults).toEqual([['not-utf8', { id: 4 }]])
  })

  it('is told to the end that serves by the id of the request', () => {
    const requests: unknown[] = []
    const lines = new Lines({ frame: () => {}, fault: ({ request, answers }) => requests.push(request, answers) }, 100)
    lines.push(Buffer.from(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"id":9,"text":"${long}"}}\n`))
    lines.push(Buffer.from(`{"jsonrpc":"2.0","method":"tools/call","params":{"id":9,"text":"${long}`))
    expect(requests).toEqual([7, undefined, undefined, undefined])
  })
})
