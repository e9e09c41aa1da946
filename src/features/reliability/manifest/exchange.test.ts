import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { expectFits } from '../../../../test/extension-schemas.ts'
import { everyField, fewestFields } from '../../../../test/reliability/manifest-fields.ts'
import { eventTypeShape } from '../events/messages.ts'
import { exportManifest, importManifest, readManifest, viewOf } from './client.ts'
import { entryOf, toolShape } from './messages.ts'

const folder = join(process.env['VIVARIUM_SCHEMAS'] ?? '', '../extensions/manifests')
const examples = process.env['VIVARIUM_SCHEMAS'] !== undefined && existsSync(folder) ? globSync('*.json', { cwd: folder }) : []

describe('manifests as documents', () => {
  it.each([
    ['every field', everyField],
    ['as few as possible', fewestFields],
  ])('E1-1: with %s are taken into a catalog and written deep-equal', (_, manifest) => {
    const imported = importManifest(JSON.parse(JSON.stringify(manifest)))
    expect(imported.tools.snapshot.entries.map(({ name }) => name)).toEqual(manifest.tools.map(({ name }) => name))
    expect(imported.events?.snapshot.entries.map(({ name }) => name)).toEqual(manifest.events?.map(({ name }) => name))
    expect(exportManifest(imported)).toEqual(manifest)
  })

  it('E1-1: our own fixture has every member that a tool can have, so that none is lost unseen', () => {
    const [first, , last] = everyField.tools
    expect(Object.keys({ ...first, ...last })).toEqual(
      expect.arrayContaining(Object.keys(toolShape.schema()['properties'] as object)),
    )
    expectFits({ ...everyField, tools: everyField.tools.slice(0, 2) }, 'service-manifest.schema.json')
  })

  it('E1-1: so it has every member that an event can have', () => {
    const [first] = everyField.events ?? []
    expect(Object.keys(first ?? {}).sort()).toEqual(Object.keys(eventTypeShape.schema()['properties'] as object).sort())
  })

  it.skipIf(examples.length === 0)('E1-1: the example manifests of the proposals are taken in and written deep-equal', () => {
    expect(examples).toHaveLength(5)
    for (const file of examples) {
      const manifest = JSON.parse(readFileSync(join(folder, file), 'utf8'))
      const imported = importManifest(manifest)
      expect(imported.tools.size).toBe(5)
      expect(exportManifest(imported)).toEqual(manifest)
    }
  })

  it('keep what extensions own in the `_meta` of the tool, where a list would have it', () => {
    const tool = importManifest(everyField).tools.get('look')
    expect(tool?._meta).toMatchObject({
      'dev.vivarium/operational': { cost: { estimated_units: 0.5 }, latency: 'seconds' },
      'dev.vivarium/permissions': { required_scopes: ['read:all', 'write:all'] },
      'dev.vivarium/confirmation': { requires_confirmation: true, risk_level: 'reversible' },
      'dev.vivarium/media': { max_input_size_bytes: 1_000_000 },
      'dev.vivarium/streaming': { supports_streaming: true },
      'dev.vivarium/manifest': { supports_pagination: false },
    })
  })

  it('are refused with the place of what is wrong', () => {
    const bad = (change: object): unknown => ({ ...fewestFields, ...change })
    expect(() => readManifest('no')).toThrow('The manifest must be an object')
    expect(() => readManifest(bad({ manifest_version: '2' }))).toThrow("The manifest's manifest_version must be one of 0.1.0")
    expect(() => readManifest(bad({ tools: [{ name: 'x', description: 'y' }] }))).toThrow(
      'tools[0].input_schema must be an object',
    )
    expect(() => readManifest(bad({ supported_extensions: ['telepathy'] }))).toThrow('supported_extensions[0] must be one of')
    const tool = { name: 'same', description: '', input_schema: {} }
    expect(() => importManifest(bad({ tools: [tool, tool] }))).toThrow('The tool "same" already exists')
    expect(() => readManifest(bad({ tools: Array(10_001).fill(tool) }))).toThrow('The limit is 10000')
    const event = { name: 'same', description: '', delivery: ['poll'] }
    expect(() => importManifest(bad({ events: [event, event] }))).toThrow('The event "same" already exists')
    expect(() => readManifest(bad({ events: [{ ...event, delivery: ['owl'] }] }))).toThrow('events[0].delivery[0] must be one of')
    expect(() => readManifest(bad({ events: Array(10_001).fill(event) }))).toThrow('10001 events. The limit is 10000')
  })

  it('never fail otherwise than by a TypeError or a name that is there twice, whatever comes', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(...Object.keys(everyField)), (value, member) => {
        for (const manifest of [value, { ...everyField, [member]: value }]) {
          try {
            const imported = importManifest(manifest)
            expect(exportManifest(imported)).toEqual(manifest)
          } catch (error) {
            expect(String(error)).toMatch(/^TypeError: The manifest|The (tool|event) "/)
          }
        }
      }),
    )
  })
})

describe('an entry', () => {
  const base = { name: 'x', inputSchema: { type: 'object' } }

  it('says nothing of a tool of which nothing is known', () => {
    expect(entryOf(base)).toEqual({ name: 'x', description: '', input_schema: { type: 'object' } })
  })

  it('takes risk from hints only where nobody says it in words', () => {
    expect(entryOf({ ...base, annotations: { destructiveHint: true } }).risk_level).toBe('destructive')
    expect(entryOf({ ...base, annotations: { readOnlyHint: true } }).risk_level).toBe('safe')
    const confirmed = { 'dev.vivarium/confirmation': { risk_level: 'reversible' } }
    expect(entryOf({ ...base, annotations: { destructiveHint: true }, _meta: confirmed }).risk_level).toBe('reversible')
  })

  it('believes no member of another type, no member of foreign extensions, and no other name', () => {
    const _meta = {
      'dev.vivarium/operational': { cost: 'much', latency: 'minutes' },
      'com.example/cost': { cost: { category: 'free' } },
      'dev.vivarium/manifest': { name: 'y', input_schema: {} },
    }
    expect(entryOf({ ...base, _meta })).toEqual({ ...entryOf(base), latency: 'minutes' })
  })
})

it('a view has the names of programs, and schemas as they are', () => {
  const view = viewOf(everyField, 'sha256:x', false)
  expect(view.server.mcpSpecVersion).toBe('2026-07-28')
  expect(view.tools[0]).toMatchObject({
    inputSchema: { properties: { some_name: {} } },
    maxInputSizeBytes: 1_000_000,
    cost: { estimatedUnits: 0.5, unitLabel: 'credits' },
    requiredScopes: ['read:all', 'write:all'],
    rateLimits: { requestsPerMinute: 6 },
  })
  expect(view.recommendations?.[0]?.registryUrl).toContain('https://')
  expect(view.events?.[0]).toMatchObject({ payloadSchema: { properties: { some_name: {} } }, filterFields: ['some_name'] })
  expect(view.document).toBe(everyField)
})
