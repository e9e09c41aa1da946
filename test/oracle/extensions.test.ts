import { describe, expect, test } from 'vitest'
import { extensionFaults } from './extensions.ts'

const key = 'dev.vivarium/idempotency'
const replay = { idempotency_key: 'k', was_replay: true, original_timestamp: '2026-01-01T00:00:00Z' }
const result = (meta: object, more: object = {}) => ({ jsonrpc: '2.0', id: 1, result: { content: [], _meta: meta, ...more } })

describe('the oracle of extensions', () => {
  test('lets through what the published schemas describe', () => {
    expect(extensionFaults(result({ [key]: replay }), 'tools/call')).toEqual([])
    expect(
      extensionFaults({ method: 'tools/call', params: { name: 'x', _meta: { [key]: { idempotency_key: 'k' } } } }, undefined),
    ).toEqual([])
    expect(
      extensionFaults({ id: 1, result: { idempotency_key: 'k', status: 'done', resultType: 'complete' } }, 'idempotency/get'),
    ).toEqual([])
    expect(extensionFaults(result({ 'other/extension': 7 }), 'tools/call')).toEqual([])
  })

  test('finds a member of another type, one that is missing and one that nobody described, wherever it stands', () => {
    const wrong = (meta: object) => extensionFaults(result({ [key]: meta }), 'tools/call')
    expect(wrong({ ...replay, was_replay: 'yes' })).toEqual([expect.stringContaining('was_replay must be boolean')])
    expect(wrong({ idempotency_key: 'k', was_replay: true })).toEqual([expect.stringContaining('original_timestamp')])
    expect(wrong({ ...replay, more: 1 })).toEqual([expect.stringContaining('must NOT have additional properties (more)')])
    const tools = [{ name: 'x', _meta: { 'dev.vivarium/operational': { cost: { category: 'cheap' } } } }]
    expect(extensionFaults({ id: 1, result: { tools } }, 'tools/list')).toHaveLength(1)
    expect(extensionFaults({ method: 'push/event', params: { featureSet: 'a' } }, undefined)).toHaveLength(1)
    expect(extensionFaults({ method: 'notifications/event', params: { unknown: 1 } }, undefined)).not.toEqual([])
    expect(extensionFaults({ id: 1, error: { code: -31000, message: 'x', data: { code: 'X' } } }, 'tools/call')).toHaveLength(1)
    expect(extensionFaults({ id: 1, result: { status: 'gone' } }, 'idempotency/get')).not.toEqual([])
  })
})
