import { describe, expect, it } from 'vitest'
import type { Caller } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { Params } from '../jsonrpc/message.ts'
import { revisionById, revisionOfMessage, SupportedRevisions } from './registry.ts'

const official = new SupportedRevisions()
const everything = new SupportedRevisions([
  '2024-11-05',
  '2025-03-26',
  '2025-06-18',
  '2025-11-25',
  '2026-07-28',
  'draft-2026-v1',
  's3',
])
const pipe: Caller = { carrier: 'stdio', connection: {} }

function http(headers: Record<string, string> = {}): Caller {
  return { carrier: 'http', connection: {}, header: name => headers[name] }
}

function claim(version: unknown): Params {
  return { _meta: { 'io.modelcontextprotocol/protocolVersion': version, 'io.modelcontextprotocol/clientCapabilities': {} } }
}

function refused(run: () => unknown): McpError {
  try {
    run()
  } catch (error) {
    if (error instanceof McpError) return error
  }
  throw new Error('was not refused')
}

describe('telling the revision of a message (rev §2.6)', () => {
  it('takes the version that a request names in _meta, also in a session of another revision', () => {
    const pinned = revisionById('2025-06-18')
    expect(revisionOfMessage('tools/list', claim('2026-07-28'), pipe, official, pinned).id).toBe('2026-07-28')
    expect(revisionOfMessage('tools/list', {}, pipe, official, pinned).id).toBe('2025-06-18')
  })

  it('refuses a named version that is not spoken, and lists those that are (trap 7)', () => {
    const error = refused(() => revisionOfMessage('tools/list', claim('2099-01-01'), pipe, official, undefined))
    expect([error.kind, error.data]).toEqual(['version-unsupported', { supported: ['2026-07-28'], requested: '2099-01-01' }])
  })

  it('refuses a header that differs from _meta even when that version is unknown (trap 4)', () => {
    const run = () =>
      revisionOfMessage('tools/list', claim('2099-01-01'), http({ 'mcp-protocol-version': '2026-07-28' }), official, undefined)
    expect(refused(run).kind).toBe('header-mismatch')
  })

  it('never lets one of header and _meta win quietly (trap 3)', () => {
    expect(refused(() => revisionOfMessage('tools/list', claim('2026-07-28'), http(), official, undefined)).kind).toBe(
      'header-mismatch',
    )
    const header = http({ 'mcp-protocol-version': '2026-07-28' })
    expect(refused(() => revisionOfMessage('tools/list', {}, header, official, undefined)).kind).toBe('invalid-envelope')
  })

  it('names missing capabilities before it looks at headers', () => {
    const params = { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } }
    expect(refused(() => revisionOfMessage('tools/list', params, http(), official, undefined)).kind).toBe('invalid-envelope')
  })

  it.each([
    ['2024-11-05', '2024-11-05'],
    ['2024-10-07', '2024-11-05'],
    ['2025-11-25', '2025-11-25'],
    ['2026-07-28', '2025-11-25'],
    ['nonsense', '2025-11-25'],
  ])('answers an initialize for %s with %s: a counter-offer, never a modern one (trap 21)', (asked, given) => {
    expect(revisionOfMessage('initialize', { protocolVersion: asked }, pipe, official, undefined).id).toBe(given)
  })

  it('tells the dialect by its own key, and only where it is enabled (rev §3.2)', () => {
    const params = { mcpVersion: '2025-06-18', clientCapabilities: {} }
    expect(revisionOfMessage('initialize', params, pipe, everything, undefined).id).toBe('s3')
    expect(refused(() => revisionOfMessage('initialize', params, pipe, official, undefined)).kind).toBe('invalid-params')
    expect(revisionOfMessage('initialize', { ...params, protocolVersion: '2025-06-18' }, pipe, everything, undefined).id).toBe(
      '2025-06-18',
    )
    expect(revisionOfMessage('tools/invoke', {}, pipe, everything, undefined).id).toBe('s3')
    expect(refused(() => revisionOfMessage('tools/invoke', {}, pipe, official, undefined)).kind).toBe('method-not-found')
  })

  it('reads a missing header over HTTP as 2025-03-26 and refuses one that names nothing spoken (trap 22)', () => {
    expect(revisionOfMessage('tools/list', {}, http(), official, undefined).id).toBe('2025-03-26')
    expect(revisionOfMessage('tools/list', {}, http({ 'mcp-protocol-version': '2025-06-18' }), official, undefined).id).toBe(
      '2025-06-18',
    )
    expect(
      refused(() => revisionOfMessage('tools/list', {}, http({ 'mcp-protocol-version': '1999' }), official, undefined)).kind,
    ).toBe('version-unsupported')
  })

  it('asks for a handshake on a pipe where nothing was said, but answers a ping', () => {
    expect(refused(() => revisionOfMessage('tools/list', {}, pipe, official, undefined)).kind).toBe('not-initialized')
    expect(revisionOfMessage('ping', {}, pipe, official, undefined).era).toBe('session')
  })

  it('ignores versions in _meta where only session wires are spoken', () => {
    const old = new SupportedRevisions(['2025-06-18'])
    expect(revisionOfMessage('tools/list', claim('2026-07-28'), pipe, old, revisionById('2025-06-18')).id).toBe('2025-06-18')
  })
})
