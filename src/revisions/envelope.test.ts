import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Caller } from '../jsonrpc/connection.ts'
import { rev20260728 } from './2026-07-28.ts'
import { revDraft2026v1 } from './draft-2026-v1.ts'
import { checkNameHeader, decodeHeaderValue, encodeHeaderValue, openEnvelope } from './envelope.ts'

const meta = (more: object = {}) => ({ _meta: { 'io.modelcontextprotocol/clientCapabilities': {}, ...more } })
const pipe: Caller = { carrier: 'stdio', connection: {} }
const http = (headers: Record<string, string>): Caller => ({ carrier: 'http', connection: {}, header: name => headers[name] })

describe('header values of 2026-07-28 (rev §2.5, trap 18)', () => {
  it('come back as they were, whatever they hold', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), value => {
        expect(decodeHeaderValue(encodeHeaderValue(value))).toBe(value)
      }),
    )
  })

  it('travel as they are when they are plain, and wrapped when they are not or only look so', () => {
    expect(encodeHeaderValue('echo tool')).toBe('echo tool')
    for (const value of [' edge', 'edge ', 'grüße', 'a\nb', '=?base64?YQ==?=']) {
      expect(encodeHeaderValue(value)).not.toBe(value)
      expect(encodeHeaderValue(value)).toMatch(/^=\?base64\?[\x21-\x7e]+\?=$/)
    }
  })

  it('are refused when the wrapper holds no base64 of UTF-8, and taken literally when it is incomplete', () => {
    for (const bad of ['=?base64?***?=', '=?base64?YQ=?=', '=?base64?/w==?=']) expect(decodeHeaderValue(bad)).toBeUndefined()
    expect(decodeHeaderValue('=?base64?YQ==')).toBe('=?base64?YQ==')
  })

  it('of Mcp-Name must be the name in the body, blanks at the edges aside', () => {
    checkNameHeader('echo', http({ 'mcp-name': ' echo ' }))
    checkNameHeader('grüße', http({ 'mcp-name': encodeHeaderValue('grüße') }))
    checkNameHeader('echo', pipe)
    for (const headers of [{}, { 'mcp-name': 'Echo' }, { 'mcp-name': 'other' }] as Record<string, string>[]) {
      expect(() => checkNameHeader('echo', http(headers))).toThrow(/Mcp-Name/)
    }
  })
})

describe('the envelope of a request (rev §2.1)', () => {
  it('may leave out who calls at 2026-07-28, but not on the draft (trap 5, rev §2.8)', () => {
    expect(openEnvelope(rev20260728, 'tools/list', meta(), pipe).info).toBeUndefined()
    expect(() => openEnvelope(revDraft2026v1, 'tools/list', meta(), pipe)).toThrow(/clientInfo/)
  })

  it('is refused when it names the caller wrongly or asks for a log level that does not exist (trap 11)', () => {
    expect(() => openEnvelope(rev20260728, 'x', meta({ 'io.modelcontextprotocol/clientInfo': { name: 1 } }), pipe)).toThrow(
      /clientInfo/,
    )
    expect(() => openEnvelope(rev20260728, 'x', meta({ 'io.modelcontextprotocol/logLevel': 'loud' }), pipe)).toThrow(/logLevel/)
  })

  it('is refused over HTTP when Mcp-Method is missing or says something else', () => {
    expect(() => openEnvelope(rev20260728, 'tools/list', meta(), http({}))).toThrow(/Mcp-Method is missing/)
    expect(() => openEnvelope(rev20260728, 'tools/list', meta(), http({ 'mcp-method': 'Tools/List' }))).toThrow(/must be equal/)
    expect(openEnvelope(rev20260728, 'tools/list', meta(), http({ 'mcp-method': ' tools/list ' }))).toBeDefined()
  })
})
