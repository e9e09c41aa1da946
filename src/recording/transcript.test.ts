import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatFrame, parseTranscript } from './transcript.ts'

const frame = (from: string, value: unknown) => ({ kind: 'frame', from, at: 0, text: JSON.stringify(value), value, wrong: false })

test('every kind of line is read, and a frame may go on over several', () => {
  const { carriers, values, steps } = parseTranscript(`# about
@ memory http
$meta = {"a":1}
with Mcp-Name: other
-> {"id":1,
     "method":"x"}
->! {"id":2}
-x 1
<- {"ok":true}
<- 404 {"ok":false}
`)
  expect(carriers).toEqual(['memory', 'http'])
  expect(values).toEqual(new Map([['$meta', { a: 1 }]]))
  expect(steps).toEqual([
    { ...frame('client', { id: 1, method: 'x' }), line: 5, headers: { 'mcp-name': 'other' } },
    { ...frame('client', { id: 2 }), line: 7, wrong: true },
    { kind: 'drop', line: 8, id: 1 },
    { ...frame('server', { ok: true }), line: 9 },
    { ...frame('server', { ok: false }), line: 10, status: 404 },
  ])
})

test('a line that is none, and a frame that is no JSON, are told by their number', () => {
  expect(() => parseTranscript('# fine\nhello')).toThrow(/Line 2/)
  expect(() => parseTranscript('-> {"id":1\n\n<- {}')).toThrow(/Line 1/)
})

test('what is formatted reads back as what it was, within the width where it can be', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), value => {
      const [step] = parseTranscript(`-> ${formatFrame(value)}`).steps
      expect(JSON.stringify(step?.kind === 'frame' ? step.value : undefined)).toBe(JSON.stringify(value))
    }),
  )
  const frame = {
    jsonrpc: '2.0',
    id: 1,
    result: { tools: Array.from({ length: 9 }, (_, at) => ({ name: `tool-${at}`, inputSchema: { type: 'object' } })) },
  }
  expect(
    Math.max(
      ...formatFrame(frame)
        .split('\n')
        .map(line => line.length),
    ),
  ).toBeLessThanOrEqual(120)
})
