import { expect, it } from 'vitest'
import { McpError } from '../../../jsonrpc/error.ts'
import { checkMirrored, type MirroredParam, mirrorHeaders } from './headers.ts'

const region: readonly MirroredParam[] = [{ header: 'mcp-param-region', path: ['region'], type: 'string' }]
/** A member of that name makes an object that cannot be made a text. */
const hostile = [JSON.parse('{"toString":1}'), JSON.parse('{"__proto__":null,"toString":null}'), [{ toString: 1 }], {}, null]

it('an argument that no header can say is sent without one, and asks for none', () => {
  for (const value of hostile) {
    expect(mirrorHeaders(region, { region: value })).toEqual({})
    expect(() => checkMirrored(region, { region: value }, () => undefined)).not.toThrow()
  }
})

it('a header beside an argument that none can say is refused as a mismatch', () => {
  for (const value of hostile) expect(() => checkMirrored(region, { region: value }, () => 'eu')).toThrow(McpError)
})

it('numbers and truth values are mirrored as they are written', () => {
  for (const [value, text] of [
    ['eu', 'eu'],
    [7, '7'],
    [false, 'false'],
    ['', ''],
  ] as const) {
    const sent = mirrorHeaders(region, { region: value })
    expect(sent).toEqual({ 'mcp-param-region': text })
    expect(() => checkMirrored(region, { region: value }, name => sent[name])).not.toThrow()
  }
})
