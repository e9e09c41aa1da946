import { describe, expect, it } from 'vitest'
import { clientScenarios, hostScenarios } from './clients/judge.ts'
import { scenarios } from './registry.ts'
import { addressOf } from './table.ts'

describe('where a clause stands', () => {
  it('a clause of the protocol is read at its own revision, or at the one that was judged', () => {
    const site = 'https://modelcontextprotocol.io/specification'
    expect(addressOf('MCP server/tools#error-handling', '2025-06-18')).toBe(`${site}/2025-06-18/server/tools#error-handling`)
    expect(addressOf('MCP 2026-07-28 basic#results', '2025-06-18')).toBe(`${site}/2026-07-28/basic#results`)
    expect(addressOf('MCP basic', 'draft-2026-v1')).toBe(`${site}/2026-07-28/basic`)
  })

  it('RFCs and JSON-RPC by their sections; statements of extensions have no page of their own', () => {
    expect(addressOf('RFC 9728 §5.1', '2025-11-25')).toBe('https://www.rfc-editor.org/rfc/rfc9728#section-5.1')
    expect(addressOf('JSON-RPC 5.1', '2025-11-25')).toBe('https://www.jsonrpc.org/specification#error_object')
    expect(addressOf('E5-3', '2025-11-25')).toBeUndefined()
  })

  it('every scenario names what it proves by words that a reader can look up', () => {
    const known = /^(MCP |RFC |JSON-RPC |SEP-\d|E\d+-\d+|L[\dAB][\d.]*-\d+|X\d+|A\d+|C\d+|dialect )/
    const all = [...scenarios, ...clientScenarios, ...hostScenarios].flatMap(({ id, proves }) =>
      proves.map(one => `${id}: ${one}`),
    )
    expect(all.filter(one => !known.test(one.slice(one.indexOf(': ') + 2)))).toEqual([])
  })
})
