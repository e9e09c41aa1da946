import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type FrameLine,
  frameText,
  frameValue,
  lineText,
  pathPattern,
  pathText,
  type RecordingLine,
  recordedFrame,
} from './format.ts'
import { readRecording } from './read.ts'
import { redaction } from './writer.ts'

const header = { recording: 1, began: '2026-11-16T00:00:00.000Z', by: 'vivarium test' } as const
const placed = { at: fc.nat(), connection: fc.nat(50) }
const headers = fc.dictionary(fc.string({ minLength: 1 }), fc.string(), { noNullPrototype: true })

const text = fc.oneof(
  fc.json(),
  fc.string({ unit: 'binary' }),
  fc.json().map(json => ` ${json}\n`),
  fc.constantFrom('{"a":1,"a":2}', '1e400', '0.10', '"\\u0041"', '{"__proto__":{"x":1}}', '', '\ud800'),
)

const line: fc.Arbitrary<RecordingLine> = fc.oneof(
  fc.record({ kind: fc.constant('open' as const), ...placed, carrier: fc.constantFrom('stdio' as const, 'http' as const) }),
  fc
    .tuple(
      text,
      fc.record({ kind: fc.constant('frame' as const), ...placed, from: fc.constantFrom('client' as const, 'server' as const) }),
    )
    .map(([frame, more]) => ({ ...more, ...recordedFrame(frame) })),
  fc.record({
    kind: fc.constant('http' as const),
    ...placed,
    from: fc.constantFrom('client' as const, 'server' as const),
    exchange: fc.nat(),
    http: fc.record({ status: fc.nat(599), headers }, { requiredKeys: [] }),
  }),
  fc.record(
    { kind: fc.constant('closed' as const), ...placed, why: fc.string() },
    { requiredKeys: ['kind', 'at', 'connection'] },
  ),
)

const readTape = (text: string) => readRecording(text, 'tape')

describe('a line of a tape', () => {
  test('gives back every frame as the very text that passed', () => {
    fc.assert(
      fc.property(text, frame => {
        const [read] = readTape(
          lineText(header) + lineText({ kind: 'frame', at: 1, connection: 1, from: 'client', ...recordedFrame(frame) }),
        ).lines
        expect(frameText(read as FrameLine)).toBe(frame)
      }),
    )
  })

  test('is read as it was written, and any number of them', () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 12 }), lines => {
        const read = readTape(lineText(header) + lines.map(lineText).join(''))
        expect(read).toEqual({ header, lines: JSON.parse(JSON.stringify(lines)), cut: false })
      }),
    )
  })

  test('that was cut at any byte leaves all before it readable', () => {
    fc.assert(
      fc.property(fc.array(line, { minLength: 1, maxLength: 6 }), fc.nat(), (lines, seed) => {
        const whole = Buffer.from(lineText(header) + lines.map(lineText).join(''))
        const first = Buffer.byteLength(lineText(header))
        const end = first + (seed % (whole.length - first))
        const read = readTape(whole.subarray(0, end).toString('utf8'))
        const complete = whole.subarray(0, end).toString('utf8').split('\n').length - 2
        expect(read.lines.length).toBeGreaterThanOrEqual(complete)
        expect(read.lines.slice(0, complete)).toEqual(JSON.parse(JSON.stringify(lines.slice(0, complete))))
      }),
    )
  })

  test('of another file is refused with its number, and so is another version', () => {
    expect(() => readTape('{"at":1,"kind":"other","version":1}\n')).toThrow(/This file is not a tape/)
    expect(() => readTape('')).toThrow(/This file is not a tape/)
    expect(() => readTape('{"tape":2,"began":"x","by":"y"}\n')).toThrow(/version 2/)
    expect(() => readTape('{"recording":2,"began":"x","by":"y"}\n')).toThrow(/version 2/)
    expect(() => readTape('{"at":1,"kind":"begin","version":2}\n')).toThrow(/version 2/)
    expect(() => readTape(`${lineText(header)}{"kind":"other"}\n`)).toThrow(/Line 2 of the tape/)
    expect(() => readTape(`${lineText(header)}no\n${lineText(header)}`)).toThrow(/Line 2 of the tape is not valid JSON/)
    const both = { kind: 'frame', at: 1, connection: 1, from: 'client', frame: {}, text: '' }
    expect(() => readTape(`${lineText(header)}${JSON.stringify(both)}\n`)).toThrow(/Line 2/)
  })

  test('keeps the beginning of a frame that is too long, and how long it was', () => {
    const kept = recordedFrame('x'.repeat(20), 5)
    expect(kept).toEqual({ text: 'xxxxx', cut: 20 })
    expect(frameValue(kept)).toBeUndefined()
  })
})

describe('a path', () => {
  test('matches itself, whatever its names are', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 6 }), path => {
        expect(pathPattern(pathText(path))(path)).toBe(true)
        expect(pathPattern(pathText(path))([...path, 'more'])).toBe(false)
        expect(pathPattern(`**${pathText(['x', ...path]).slice(1)}`)(['y', 'z', ...path])).toBe(true)
      }),
    )
  })

  test('has an asterisk for one member and two for any number', () => {
    const path = ['result', 'content', '0', 'text']
    for (const good of [
      'result.content[0].text',
      'result.content.*.text',
      'result.**',
      '**.text',
      '**',
      'result.**.text',
      'result.content[*].text',
    ])
      expect([good, pathPattern(good)(path)]).toEqual([good, true])
    for (const bad of ['content[0].text', 'result.*.text', '*', '**.content', 'result.content[1].text'])
      expect([bad, pathPattern(bad)(path)]).toEqual([bad, false])
    expect(() => pathPattern('a..b')).toThrow(/is not a valid path/)
    expect(() => pathPattern('')).toThrow(/empty/)
  })
})

describe('redaction', () => {
  test('takes named members out of frames and of each frame of a batch, and secrets out of headers', () => {
    const { frame, headers: open } = redaction(['params.arguments.password', '**.apiKey'])
    const secret = { method: 'tools/call', params: { arguments: { password: 'p', other: 1, deep: [{ apiKey: 'k' }] } } }
    const hidden = {
      method: 'tools/call',
      params: { arguments: { password: '[redacted]', other: 1, deep: [{ apiKey: '[redacted]' }] } },
    }
    expect(JSON.parse(frame(JSON.stringify(secret)))).toEqual(hidden)
    expect(JSON.parse(frame(JSON.stringify([secret, secret])))).toEqual([hidden, hidden])
    expect(frame(' {"a": 1} ')).toBe(' {"a": 1} ')
    expect(frame('password=p')).not.toContain('password=p')
    expect(open({ authorization: 'Bearer x', 'mcp-session-id': 's', 'content-type': 'a' })).toEqual({
      authorization: '[redacted]',
      'mcp-session-id': '[redacted]',
      'content-type': 'a',
    })
  })
})
