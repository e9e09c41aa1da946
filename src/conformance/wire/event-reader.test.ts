import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EventReader } from './http-call.ts'
import type { StreamEvent } from './raw-peer.ts'

function read(...pieces: readonly (string | Uint8Array)[]): StreamEvent[] {
  const events: StreamEvent[] = []
  const reader = new EventReader(event => events.push(event))
  for (const piece of pieces) reader.push(typeof piece === 'string' ? new TextEncoder().encode(piece) : piece)
  return events
}

describe('reading events', () => {
  it('keeps ids, types and the wait that is asked for', () => {
    expect(read('id: 7\nretry: 500\ndata:\n\nevent: endpoint\ndata: /post?x=1\n\n: alive\n\ndata: a\ndata: b\n\n')).toEqual([
      { type: '', data: '', id: '7', retry: 500 },
      { type: 'endpoint', data: '/post?x=1' },
      { type: '', data: 'a\nb' },
    ])
  })

  it('reads the same whatever ends lines and wherever the stream is cut', () => {
    const text = 'id: é1\ndata: {"a":"漢"}\n\nevent: message\ndata: two\n\n'
    const whole = read(text)
    fc.assert(
      fc.property(fc.constantFrom('\n', '\r\n', '\r'), fc.array(fc.nat(80), { maxLength: 8 }), (end, cuts) => {
        // One more byte, so that a CR at the very end is known not to be half of a line end.
        const bytes = new TextEncoder().encode(`${text.replaceAll('\n', end)}:`)
        const places = [...new Set(cuts.map(cut => Math.min(cut, bytes.length)))].sort((a, b) => a - b)
        const pieces = [0, ...places].map((from, at) => bytes.subarray(from, places[at] ?? bytes.length))
        expect(read(...pieces)).toEqual(whole)
      }),
    )
  })
})
