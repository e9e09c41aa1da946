import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { contradiction, sniff } from './sniff.ts'

const head = (text: string): Uint8Array => Uint8Array.from(text, char => char.charCodeAt(0))

/** Beginnings of real files, by type. */
const samples: Readonly<Record<string, string>> = {
  'image/png': '\x89PNG\r\n\x1a\n\0\0\0\rIHDR',
  'image/jpeg': '\xff\xd8\xff\xe0\0\x10JFIF',
  'image/gif': 'GIF89a\x01\0',
  'image/webp': 'RIFF\x24\0\0\0WEBPVP8 ',
  'image/tiff': 'II*\0\x08\0\0\0',
  'application/pdf': '%PDF-1.7\n',
  'application/zip': 'PK\x03\x04\x14\0',
  'application/gzip': '\x1f\x8b\x08\0\0\0',
  'application/wasm': '\0asm\x01\0\0\0',
  'audio/wav': 'RIFF\x24\0\0\0WAVEfmt ',
  'audio/mpeg': 'ID3\x04\0\0\0\0',
  'audio/flac': 'fLaC\0\0\0"',
  'audio/ogg': 'OggS\0\x02\0\0',
  'audio/midi': 'MThd\0\0\0\x06',
  'audio/aiff': 'FORM\0\0\0\x2eAIFF',
  'video/mp4': '\0\0\0\x18ftypmp42',
  'video/webm': '\x1aE\xdf\xa3\x01\0\0\0',
  'video/x-msvideo': 'RIFF\x24\0\0\0AVI LIST',
}
const types = Object.keys(samples)

describe('first bytes', () => {
  it.each(types)('show %s', type => {
    expect(sniff(head(samples[type] ?? ''))).toBe(type)
  })

  it('E10-4: contradict every other type that has a signature, and their own never', () => {
    fc.assert(
      fc.property(fc.constantFrom(...types), fc.constantFrom(...types), fc.string(), (said, real, rest) => {
        const found = contradiction(said.toUpperCase(), head(`${samples[real]}${rest}`))
        expect(found).toBe(said === real ? undefined : real)
      }),
    )
  })

  it.each([
    ['image/png', '<!DOCTYPE html><p>', 'text/html'],
    ['image/png', '\n\t <script>alert(1)</script>', 'text/html'],
    ['image/png', '\x89PNG', 'something else'],
    ['image/png', '', 'something else'],
    ['image/svg+xml', '<html><svg/></html>', 'text/html'],
    ['image/x-secret', '<html>', 'text/html'],
    ['audio/x-secret', '%PDF-1.4', 'application/pdf'],
    ['image/x-secret', 'ID3\x03', 'audio/mpeg'],
    ['text/plain', '\x89PNG\r\n\x1a\n', 'image/png'],
    ['application/ld+json', 'PK\x03\x04', 'application/zip'],
    ['image/bmp', 'PK\x03\x04', 'application/zip'],
  ])('E10-4: %s that begins with %j is %s', (said, text, real) => {
    expect(contradiction(said, head(text))).toBe(real)
  })

  it.each([
    ['image/jpg', '\xff\xd8\xff\xdb'],
    ['audio/mp3', '\xff\xfb\x90\0'],
    ['audio/x-wav', 'RIFF\x24\0\0\0WAVEfmt '],
    ['image/heic', '\0\0\0\x18ftypheic'],
    ['image/svg+xml', '\xef\xbb\xbf<?xml version="1.0"?><svg/>'],
    ['image/bmp', 'BM\0\0'],
    ['application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', 'PK\x03\x04'],
    ['image/openraster', 'PK\x03\x04'],
    ['application/octet-stream', '\x89PNG\r\n\x1a\n'],
    ['application/x-secret', '<html>'],
    ['text/plain', '<html> as an example'],
    ['text/plain', 'BMW and MZ are no signatures'],
    ['text/html', '<p>a fragment</p>'],
    ['text/csv', 'a,b\n1,2'],
    ['image/x-secret', 'whatever'],
  ])('E10-4: %s may begin with %j', (said, text) => {
    expect(contradiction(said, head(text))).toBeUndefined()
  })

  it('any bytes are looked at without a fault', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), fc.constantFrom(...types, 'text/plain', 'a/b', ''), (bytes, type) => {
        const shown = contradiction(type, bytes)
        if (shown === undefined && types.includes(type)) expect(bytes.length).toBeGreaterThan(1)
      }),
    )
  })
})
