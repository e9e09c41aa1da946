import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SseParser } from '../sse/parse.ts'
import { byteLength, endpointText, eventText, keepAliveText, primingText, retryText } from './event.ts'

function read(text: string) {
  const events: { data: string; type: string; id: string | undefined }[] = []
  const parser = new SseParser({ eventBytes: 1 << 20 }, (data, type) => events.push({ data, type, id: parser.lastId }))
  parser.push(new TextEncoder().encode(text))
  return { events, retryMs: parser.retryMs }
}

describe('event text', () => {
  it('carries any JSON text so that a reader gets the same value back', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(0, 2), fc.constantFrom('\n', '\r', '\r\n'), (value, indent, lineBreak) => {
        const frame = JSON.stringify(value, null, indent).replaceAll('\n', lineBreak)
        const { events } = read(eventText(frame, 's1-4'))
        expect(events).toHaveLength(1)
        expect(events[0]).toMatchObject({ type: '', id: 's1-4' })
        expect(JSON.parse(events[0]?.data ?? '')).toEqual(JSON.parse(frame))
      }),
    )
  })

  it('has no id where the stream is not kept', () => {
    expect(eventText('{}')).toBe('event: message\ndata: {}\n\n')
  })

  it('primes with an id and empty data (rev D §1.2, trap 23)', () => {
    expect(primingText('s1-0')).toBe('id: s1-0\ndata: \n\n')
  })

  it('asks for a whole number of milliseconds, and says comments that are no events', () => {
    const { events, retryMs } = read(retryText(499.6) + keepAliveText)
    expect(events).toEqual([])
    expect(retryMs).toBe(500)
  })

  it('names the address of the old pair as its own kind of event (rev A §1.2)', () => {
    expect(read(endpointText('/sse/message?session=a')).events).toMatchObject([
      { type: 'endpoint', data: '/sse/message?session=a' },
    ])
  })

  it('counts bytes, not characters', () => {
    expect(byteLength('aé漢🙂')).toBe(1 + 2 + 3 + 4)
  })
})
