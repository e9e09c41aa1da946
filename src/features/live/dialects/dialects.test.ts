import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { McpError } from '../../../jsonrpc/error.ts'
import { type LiveBlock, writeBlocks } from '../content/messages.ts'
import type { FeatureSetFacts } from '../feature-sets/messages.ts'
import { readAnnounced, readDeclarations } from './announced.ts'
import {
  readBefore,
  readContent,
  readIncoming,
  readLiveState,
  readPush,
  readRollback,
  refusedRollback,
  toolSetOf,
} from './messages.ts'
import { type HostSelection, readSelectionReply, writeSelection } from './selection.ts'

const writeContent = (blocks: readonly LiveBlock[], form: 'source' | 'flat') => writeBlocks(blocks, form === 'source')

const announcedPaths = (mcpl: unknown) => readAnnounced({ experimental: { mcpl } })?.paths ?? []
const isOffered = (pushEvents: unknown) => readAnnounced({ experimental: { mcpl: { pushEvents } } })?.pushEvents
const expandTags = (tags: readonly string[]) =>
  readPush({ featureSet: 'a', eventId: 'e', timestamp: '', payload: { content: 'x' }, tags })?.event.tags ?? []

const text = fc.string({ maxLength: 20 })
const block: fc.Arbitrary<LiveBlock> = fc.oneof(
  fc.record({ type: fc.constant('text' as const), text }),
  fc.record({ type: fc.constantFrom('image' as const, 'audio' as const), data: fc.base64String(), mimeType: text }),
  fc.record(
    { type: fc.constant('resource_link' as const), uri: text, name: text, title: text },
    { requiredKeys: ['type', 'uri'] },
  ),
)
const name = fc.string({ minLength: 1, maxLength: 12 }).filter(one => !one.includes('*'))
const facts: fc.Arbitrary<FeatureSetFacts> = fc.record(
  {
    description: text,
    uses: fc.array(fc.constantFrom('pushEvents', 'tools', 'channels.incoming', 'odd')),
    scoped: fc.constant(true),
    rollback: fc.constant(true),
    hostState: fc.constant(true),
  },
  { requiredKeys: ['description', 'uses'] },
)
const sets = fc.uniqueArray(fc.tuple(name, facts), { selector: ([one]) => one, maxLength: 8 })
const tree = fc.letrec(tie => ({
  node: fc.oneof(
    { depthSize: 'small' },
    fc.boolean(),
    fc.constant(null),
    text,
    fc.dictionary(fc.string({ maxLength: 6 }), tie('node')),
  ),
})).node

describe('content', () => {
  test('A10: whatever is written in either form is read as it was', () => {
    fc.assert(
      fc.property(fc.array(block), fc.constantFrom('source' as const, 'flat' as const), (blocks, form) => {
        const wire = JSON.parse(JSON.stringify(writeContent(blocks, form)))
        expect(readContent(wire)).toEqual({ blocks, dropped: [] })
      }),
    )
  })

  test('A10: only 0.2 keeps media under source', () => {
    const image: LiveBlock = { type: 'image', data: 'aGk=', mimeType: 'image/png' }
    expect(writeContent([image], 'flat')).toEqual([image])
    expect(writeContent([image], 'source')).toEqual([
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } },
    ])
  })

  test('reading never fails, and loses nothing without a word', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), wire => {
        const { blocks, dropped } = readContent(wire)
        expect(blocks.length + dropped.length).toBe(wire.length)
      }),
    )
    fc.assert(fc.property(fc.jsonValue(), wire => void readContent(wire)))
  })

  test('texts, embedded resources and links of media are read for what they hold', () => {
    const { blocks, dropped } = readContent([
      { type: 'text' },
      'bare',
      { type: 'resource', resource: { uri: 'a:1', text: 'inside' } },
      { type: 'resource', resource: { uri: 'a:2', blob: 'aGk=', mimeType: 'audio/wav' } },
      { type: 'resource', uri: 'a:3' },
      { type: 'image', source: { type: 'url', url: 'https://example.org/a.png' } },
      { type: 'image' },
      { type: 'hologram' },
      7,
    ])
    expect(blocks).toEqual([
      { type: 'text', text: '' },
      { type: 'text', text: 'bare' },
      { type: 'text', text: 'inside' },
      { type: 'audio', data: 'aGk=', mimeType: 'audio/wav' },
      { type: 'resource_link', uri: 'a:3' },
      { type: 'resource_link', uri: 'https://example.org/a.png' },
    ])
    expect(dropped).toEqual([
      'a block of type "image" without data',
      'a block of the unknown type "hologram"',
      'a block that is not an object',
    ])
  })
})

describe('declarations', () => {
  test('A3: an object and an array declare the same sets', () => {
    fc.assert(
      fc.property(sets, declared => {
        const byName = readDeclarations(JSON.parse(JSON.stringify(Object.fromEntries(declared))))
        const listed = readDeclarations(declared.map(([one, set]) => ({ name: one, ...set })))
        // An object has its own order for names that look like numbers.
        expect([...byName.sets].sort()).toEqual([...listed.sets].sort())
        expect(listed).toEqual({ sets: new Map(declared), faulty: new Map() })
      }),
    )
  })

  test('reading never fails, and names nothing twice', () => {
    fc.assert(
      fc.property(fc.jsonValue(), wire => {
        const { sets: valid, faulty } = readDeclarations(wire)
        for (const one of valid.keys()) expect(faulty.has(one) || one.includes('*')).toBe(false)
      }),
    )
  })

  test('a thousand sets are enough', () => {
    const many = Array.from({ length: 1_200 }, (_, at) => ({ name: `s${at}`, description: '', uses: [] }))
    expect(readDeclarations(many).sets.size).toBe(1_000)
  })
})

describe('capabilities', () => {
  test('T2: true stands for all that lies below it', () => {
    expect(announcedPaths({ contextHooks: { beforeInference: { inject: true } } })).toEqual([
      'contextHooks.beforeInference',
      'contextHooks.beforeInference.inject.system',
      'contextHooks.beforeInference.inject.beforeUser',
      'contextHooks.beforeInference.inject.afterUser',
    ])
    expect(
      announcedPaths({ contextHooks: { afterInference: { blocking: true } }, inferenceRequest: { streaming: false } }),
    ).toEqual(['contextHooks.afterInference', 'inferenceRequest'])
    expect(announcedPaths({ channels: false, pushEvents: true, version: '0.5', featureSets: { a: true } })).toEqual([
      'pushEvents',
    ])
  })

  test('whatever is announced, paths are plain, few, and each there once', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ maxLength: 6 }), tree), mcpl => {
        const paths = announcedPaths(mcpl)
        expect(new Set(paths).size).toBe(paths.length)
        expect(paths.length).toBeLessThan(300)
        for (const path of paths) expect(path).toMatch(/^[A-Za-z0-9_:.-]+$/)
      }),
    )
  })

  test('what a node offers is what one of its leaves offers', () => {
    expect([true, {}, { a: true }, { a: { b: true } }].map(isOffered)).toEqual([true, true, true, true])
    expect([false, undefined, null, 'true', { a: false }, { a: { b: false } }, []].map(isOffered)).toEqual(Array(7).fill(false))
  })

  test('A5: who does not say its version is told by the shape of its sets', () => {
    const label = (mcpl: unknown) => readAnnounced({ experimental: { mcpl } })?.label
    expect(label({ featureSets: [] })).toBe('0.4')
    expect(label({ featureSets: {} })).toBe('0.2')
    expect(['0.1', '0.2', '0.3', '0.4.1', '0.5', '0.10', '1.0', 'v0.4', 'new'].map(version => label({ version }))).toEqual([
      '0.2',
      '0.2',
      '0.3',
      '0.4',
      '0.5',
      '0.5',
      '0.5',
      '0.4',
      '0.2',
    ])
    expect(readAnnounced({ tools: {} })).toBe(undefined)
    expect(readAnnounced({ experimental: { mcpl: false } })).toBe(undefined)
  })
})

describe('selections', () => {
  const choice = (enabled: readonly string[], disabled: readonly string[]): HostSelection => ({
    enabled,
    disabled,
    canEnable: () => true,
  })

  test('A21: each declared set is in exactly one list, whatever was chosen, and no list has a pattern', () => {
    const pattern = fc.oneof(name, fc.constantFrom('*', 'a.*', '.*'))
    fc.assert(
      fc.property(sets, fc.array(pattern), fc.array(pattern), fc.string({ maxLength: 4 }), (declared, on, off, version) => {
        const featureSets = declared.map(([one, set]) => ({ name: one, ...set }))
        const announced = readAnnounced({ tools: {}, experimental: { mcpl: { version, featureSets, pushEvents: true } } })
        if (announced === undefined) throw new Error('It is live')
        const chosen = [...on, ...declared.slice(0, 2).map(([one]) => one)]
        const { byRequest, byNotice, enabled } = writeSelection(announced, choice(chosen, off))
        expect([...(byRequest.enabled ?? []), ...(byRequest.disabled ?? [])].sort()).toEqual(declared.map(([one]) => one).sort())
        expect(byRequest.enabled).toEqual([...enabled.keys()])
        for (const one of byRequest.enabled ?? []) expect(off).not.toContain(one)
        expect(JSON.stringify([byRequest.enabled, byRequest.disabled, byRequest.effectiveCapabilities])).not.toContain('*')
        expect({ ...byNotice, effectiveCapabilities: byRequest.effectiveCapabilities }).toEqual(byRequest)
      }),
    )
  })

  test('scopes of sets that nobody declared are not told', () => {
    const announced = readAnnounced({ experimental: { mcpl: { featureSets: { a: { description: '', uses: [] } } } } })
    const scopes = { a: { whitelist: ['x'] }, b: { whitelist: ['y'] } }
    expect(announced && writeSelection(announced, { ...choice(['a'], []), scopes }).byNotice.scopes).toEqual({ a: scopes.a })
  })

  test('whatever comes back is a receipt', () => {
    fc.assert(fc.property(fc.jsonValue(), wire => void readSelectionReply(wire)))
    expect(
      readSelectionReply({ accepted: true, unavailableFeatures: [{ featureSet: 'a', missingCapabilities: ['b', 7] }, 'x'] }),
    ).toEqual({
      accepted: true,
      fallback: 'mcp-only',
      unavailable: [{ featureSet: 'a', missing: ['b'] }],
    })
    expect(readSelectionReply({ accepted: false, fallback: 'close' })).toMatchObject({ accepted: false, fallback: 'close' })
  })
})

describe('events', () => {
  const at = { featureSet: 'a', eventId: 'e', timestamp: '2026-01-01T00:00:00Z' }

  test('T5: of a push nothing is lost: what has no place of its own is kept aside', () => {
    const known = ['featureSet', 'eventId', 'timestamp', 'origin', 'payload', 'tags']
    const strange = fc.dictionary(
      fc.string({ maxLength: 6 }).filter(one => !known.includes(one) && one !== '__proto__'),
      fc.jsonValue(),
    )
    fc.assert(
      fc.property(strange, more => {
        const read = readPush({ ...more, ...at, payload: { content: 'x' } })
        expect(read?.event.extra ?? {}).toEqual(more)
      }),
    )
  })

  test('T5: tags only grow, but for ambient where somebody is spoken to', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('chat:mention', 'chat:reply', 'chat:dm', 'chat:ambient', 'x:y')), tags => {
        const all = expandTags(tags)
        for (const tag of tags) expect(all.includes(tag) || (tag === 'chat:ambient' && all.includes('chat:addressed'))).toBe(true)
        expect(expandTags(all)).toEqual(all)
      }),
    )
    expect(expandTags(['chat:dm'])).toEqual(['chat:dm', 'chat:addressed', 'chat:private'])
  })

  test('T3: messages of different channels are different events, and time is filled in where it is missing', () => {
    const read = (channelId: string, messageId: string) => readIncoming({ channelId, messageId, content: 'x' }, 'set', 0)?.event
    expect(read('a', 'b","c')?.eventId).not.toBe(read('a","b', 'c')?.eventId)
    expect(read('a', 'b')?.timestamp).toBe('1970-01-01T00:00:00.000Z')
    expect(readIncoming({ messageId: 'b' }, 'set', 0)).toBe(undefined)
  })
})

describe('state', () => {
  test('A13: a parent that was not said is not there, null is a root', () => {
    expect(readLiveState({ state: { checkpoint: 'a' } })).toEqual({ checkpoint: 'a' })
    expect(readLiveState({ state: { checkpoint: 'a', parent: null } })).toEqual({ checkpoint: 'a', parent: null })
    expect(readLiveState({ state: 'a' })).toBe(undefined)
  })

  test('A14: a no has many forms', () => {
    expect(readRollback({ success: true, checkpoint: 'b' }, 'a')).toEqual({ success: true, checkpoint: 'b' })
    expect(readRollback({ success: false, reason: 'checkpoint a was pruned' }, 'a')).toMatchObject({ missing: true })
    expect(readRollback(undefined, 'a')).toEqual({ success: false, checkpoint: 'a', reason: expect.any(String) })
    const remote = (code: number, message: string, data?: unknown) => new McpError('remote', message, { code, data })
    expect(refusedRollback(remote(-32005, 'gone', { checkpoint: 'a' }), 'a')).toMatchObject({ missing: true })
    expect(refusedRollback(remote(-32005, 'rate limit'), 'a')).toBe(undefined)
    expect(refusedRollback(new Error('Checkpoint not found'), 'a')).toBe(undefined)
  })

  test('A11: among several sets nobody guesses', () => {
    const plain: FeatureSetFacts = { description: '', uses: [] }
    const stateful: FeatureSetFacts = { ...plain, rollback: true }
    const one = new Map([
      ['a', stateful],
      ['b', plain],
    ])
    const two = new Map([
      ['a', stateful],
      ['b', stateful],
    ])
    expect([toolSetOf({}, one), toolSetOf({}, two), toolSetOf({ _meta: { featureSet: 'b' } }, two)]).toEqual([
      'a',
      undefined,
      'b',
    ])
  })
})

test('an object whose toString is no function is named like any other', () => {
  const trap = JSON.parse('{"toString":1,"valueOf":2}')
  expect(readContent([{ type: trap }]).dropped).toEqual(['a block of the unknown type "{"toString":1,"valueOf":2}"'])
  expect(readBefore({ featureSet: 'a', contextInjections: [{ namespace: 'n', position: trap }] })?.dropped).toHaveLength(1)
})

test('whatever a hook answers is read or refused, never thrown at', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.array(fc.jsonValue()), (wire, contextInjections) => {
      readBefore(wire)
      const read = readBefore({ featureSet: 'a', contextInjections })
      expect((read?.injections.length ?? 0) <= contextInjections.length).toBe(true)
    }),
  )
})
