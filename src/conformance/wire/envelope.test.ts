import { describe, expect, it } from 'vitest'
import { decodeHeaderValue } from '../../revisions/index.ts'
import { capabilitiesOf, carries, headerValue, keys, messageHeaders, requestMeta } from './envelope.ts'

describe('what a right message carries', () => {
  it('a stateless request repeats its method and its name in headers, and says who asks', () => {
    const message = { method: 'tools/call', params: { name: 'größe' } }
    const headers = messageHeaders('2026-07-28', message, undefined, undefined)
    expect(headers).toMatchObject({ 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call' })
    expect(decodeHeaderValue(headers['mcp-name'] ?? '')).toBe('größe')
    const meta = requestMeta('draft-2026-v1', { capabilities: { roots: {} } }, { progressToken: 1 })
    expect(meta).toMatchObject({ [keys.version]: 'DRAFT-2026-v1', [keys.capabilities]: { roots: {} }, progressToken: 1 })
  })

  it('a request of a session names it, and from 2025-06-18 on the version; initialize names neither', () => {
    expect(messageHeaders('2025-06-18', { method: 'ping' }, 's', '2025-06-18')).toMatchObject({
      'mcp-session-id': 's',
      'mcp-protocol-version': '2025-06-18',
    })
    expect(messageHeaders('2025-03-26', { method: 'ping' }, 's', '2025-03-26')).not.toHaveProperty('mcp-protocol-version')
    expect(Object.keys(messageHeaders('2025-11-25', { method: 'initialize' }, 's', '2025-11-25'))).toEqual([
      'content-type',
      'accept',
    ])
  })

  it('what cannot be a header as it is comes encoded, also what only looks encoded', () => {
    for (const text of ['plain', ' edge', 'ä', '=?base64?eA==?=', 'a b']) expect(decodeHeaderValue(headerValue(text))).toBe(text)
    expect(headerValue('plain')).toBe('plain')
  })

  it('extensions and MCP Live are declared where the revision has a place for them', () => {
    const options = { extensions: { 'x/y': {} }, live: { version: '0.2' } }
    expect(capabilitiesOf('2026-07-28', options)).toEqual({ extensions: { 'x/y': {}, 'dev.vivarium/live': { version: '0.2' } } })
    expect(capabilitiesOf('2025-06-18', options)).toEqual({ experimental: { 'x/y': {}, mcpl: { version: '0.2' } } })
  })

  it('the oldest revision has no Streamable HTTP, and stateless ones no old pair', () => {
    expect([carries('2024-11-05', 'http'), carries('2026-07-28', 'sse'), carries('2025-06-18', 'sse')]).toEqual([
      false,
      false,
      true,
    ])
  })
})
