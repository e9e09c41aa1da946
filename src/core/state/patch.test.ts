import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { difference, patched } from './patch.ts'

const json = fc.jsonValue({ maxDepth: 4 })

describe('patches', () => {
  test.each([{ length: 1 }, 'add', null])('what is no list of steps is refused as such: %j', steps => {
    expect(() => patched({}, steps as never)).toThrow('A patch must be a list of steps')
  })

  test('every kind of step does what RFC 6902 says', () => {
    expect(patched({ a: 1 }, [{ op: 'add', path: '/b', value: [1] }])).toEqual({ a: 1, b: [1] })
    expect(patched({ a: [1, 3] }, [{ op: 'add', path: '/a/1', value: 2 }])).toEqual({ a: [1, 2, 3] })
    expect(patched({ a: [1] }, [{ op: 'add', path: '/a/-', value: 2 }])).toEqual({ a: [1, 2] })
    expect(patched({ a: 1, b: 2 }, [{ op: 'remove', path: '/a' }])).toEqual({ b: 2 })
    expect(patched({ a: 1 }, [{ op: 'replace', path: '/a', value: null }])).toEqual({ a: null })
    expect(patched({ a: 1 }, [{ op: 'move', from: '/a', path: '/b' }])).toEqual({ b: 1 })
    expect(patched({ a: { x: 1 } }, [{ op: 'copy', from: '/a', path: '/b' }])).toEqual({ a: { x: 1 }, b: { x: 1 } })
    expect(patched({ a: 1 }, [{ op: 'test', path: '/a', value: 1 }])).toEqual({ a: 1 })
    expect(patched({ a: 1 }, [{ op: 'replace', path: '', value: [] }])).toEqual([])
    expect(patched({ 'a/b': { '~': 1 } }, [{ op: 'remove', path: '/a~1b/~0' }])).toEqual({ 'a/b': {} })
  })

  test('a step that cannot be done undoes the whole patch and is named', () => {
    const document = { a: 1 }
    const steps = [
      { op: 'add', path: '/b', value: 2 },
      { op: 'remove', path: '/none' },
    ]
    expect(() => patched(document, steps)).toThrow(/Step 1/)
    expect(document).toEqual({ a: 1 })
  })

  test('a test that does not hold is a conflict', () => {
    expect(() => patched({ a: 1 }, [{ op: 'test', path: '/a', value: 2 }])).toThrow(
      expect.objectContaining({ code: 'STATE_CONFLICT' }),
    )
  })

  test('what is no step is refused', () => {
    for (const step of [
      null,
      1,
      {},
      { op: 'add' },
      { op: 'grow', path: '' },
      { op: 'add', path: 'a', value: 1 },
      { op: 'add', path: '/~2', value: 1 },
    ])
      expect(() => patched({}, [step])).toThrow(expect.objectContaining({ code: 'STATE_INVALID' }))
    expect(() => patched({}, [{ op: 'add', path: '/a' }])).toThrow(/needs a value/)
    expect(() => patched({ a: 1 }, [{ op: 'copy', path: '/b' }])).toThrow(/needs a from/)
  })
})

describe('what means harm', () => {
  const names = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '__defineGetter__', 'valueOf', 'length']
  const escaped = names.flatMap(name => [`/${name}`, `/${name}/polluted`, `/a/${name}`, `/a/${name}/polluted`, `/list/${name}`])

  test.each(escaped)('no pointer reaches what documents inherit: %s', pointer => {
    const keys = JSON.stringify([Object.keys(Object.prototype), Object.keys(Array.prototype)])
    for (const step of [
      { op: 'add', path: pointer, value: 1 },
      { op: 'replace', path: pointer, value: 1 },
      { op: 'remove', path: pointer },
      { op: 'copy', from: pointer, path: '/x' },
      { op: 'move', from: '/a', path: pointer },
    ]) {
      try {
        const after = patched({ a: {}, list: [] }, [step]) as Record<string, unknown>
        // Only an own member of that name may have come of it.
        expect(Object.getPrototypeOf(after)).toBe(Object.prototype)
      } catch (error) {
        expect(error).toMatchObject({ code: 'STATE_INVALID' })
      }
    }
    expect(JSON.stringify([Object.keys(Object.prototype), Object.keys(Array.prototype)])).toBe(keys)
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })

  test('copies that double the document end at the size limit, not in memory', () => {
    const steps = Array.from({ length: 40 }, (_, i) => ({ op: 'copy', from: '', path: `/c${i}` }))
    expect(() => patched({ seed: 'x'.repeat(1000) }, steps)).toThrow(expect.objectContaining({ code: 'PAYLOAD_TOO_LARGE' }))
  })

  test('a document may be rewritten again and again without meeting the size limit', () => {
    const steps = Array.from({ length: 500 }, () => ({ op: 'replace', path: '/a', value: 'x'.repeat(1000) }))
    expect(patched({ a: '' }, steps, { steps: 1000, bytes: 10_000, depth: 5 })).toEqual({ a: 'x'.repeat(1000) })
  })

  test('a value cannot be moved into itself, nor an array be given a far place', () => {
    expect(() => patched({ a: { b: {} } }, [{ op: 'move', from: '/a', path: '/a/b/c' }])).toThrow(/into itself/)
    for (const place of ['1', '01', '-1', '1e3', '99999999999', ' 0', '0x0'])
      expect(() => patched({ a: [] }, [{ op: 'add', path: `/a/${place}`, value: 1 }])).toThrow(/no value exists at its path/)
  })

  test('too many steps, and too deep a document, are refused', () => {
    expect(() =>
      patched(
        {},
        Array.from({ length: 10_001 }, () => ({ op: 'test', path: '', value: {} })),
      ),
    ).toThrow(/10001 steps/)
    let deep: unknown = 1
    for (let i = 0; i < 200; i++) deep = [deep]
    expect(() => patched({}, [{ op: 'add', path: '/a', value: deep }])).toThrow(/deeper than 128/)
  })
})

test('the difference of two documents leads from one to the other', () => {
  fc.assert(
    fc.property(json, json, (before, after) => {
      fc.pre(!/__proto__|constructor|prototype/.test(JSON.stringify([before, after])))
      expect(patched(before, difference(before, after))).toEqual(after)
    }),
  )
})

test('a patch leaves the document it was given as it was', () => {
  fc.assert(
    fc.property(json, json, (before, after) => {
      fc.pre(!/__proto__|constructor|prototype/.test(JSON.stringify([before, after])))
      const copy = structuredClone(before)
      patched(before, difference(before, after))
      expect(before).toEqual(copy)
    }),
  )
})
