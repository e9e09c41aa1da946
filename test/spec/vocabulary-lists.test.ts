/** What each wire shows of one rich server in its lists and in its opening: exactly its own words (revisions §1.1, §1.5). */
import { afterAll, describe, expect, it } from 'vitest'
import type { RevisionId } from '../../src/revisions/index.ts'
import { annotations, dialect2020, icons, meta, regionInput, richServer, toolHints, treeOutput } from './rich-server.ts'
import { everyRevision, type Frame, resultOf, speak } from './wire.ts'

const server = richServer()
afterAll(() => server.close())

const at = (revision: RevisionId): number => everyRevision.indexOf(revision)
/** From this wire on, the draft included. */
const since = (revision: RevisionId, first: RevisionId): boolean => revision !== 's3' && at(revision) >= at(first)
const ifSince = (revision: RevisionId, first: RevisionId, members: Frame): Frame => (since(revision, first) ? members : {})

const { lastModified, ...plainAnnotations } = annotations
const { $schema, ...bareInput } = regionInput
const output = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] }
const nothingIn = { type: 'object', additionalProperties: false }

async function listed(revision: RevisionId, method: string, member: string): Promise<readonly Frame[]> {
  const wire = await speak(server, revision)
  const result = (await wire.ask(method))['result']
  await wire.close()
  return (Array.isArray(result) ? result : (result as Frame)[member]) as readonly Frame[]
}

const byName = (list: readonly Frame[], name: string): Frame | undefined => list.find(entry => entry['name'] === name)

/** The input schema as a wire words it: marks for headers are E's and the draft's, `$schema` came with D. */
function inputAt(revision: RevisionId): Frame {
  const region = since(revision, '2026-07-28') ? regionInput.properties.region : { type: 'string' }
  return { ...(since(revision, '2025-11-25') ? { $schema } : {}), ...bareInput, properties: { region } }
}

describe.each(everyRevision)('tools/list at %s (§1.5 tool fields)', revision => {
  it('shows of a tool that has every field exactly those of the wire', async () => {
    const tool = byName(await listed(revision, 'tools/list', 'tools'), 'rich')
    expect(tool).toEqual({
      name: 'rich',
      description: 'Shows a block of every kind',
      inputSchema: inputAt(revision),
      ...ifSince(revision, '2025-03-26', {
        annotations: since(revision, '2025-06-18') ? toolHints : { title: 'Rich tool', ...toolHints },
      }),
      ...ifSince(revision, '2025-06-18', { title: 'Rich tool', outputSchema: output, _meta: meta }),
      ...ifSince(revision, '2025-11-25', { icons }),
      ...(revision === '2025-11-25' || revision === 'draft-2026-v1' ? { execution: { taskSupport: 'optional' } } : {}),
    })
  })

  it('shows an output schema whose root is no object as it is on E, wrapped where only objects are known, else not at all', async () => {
    const tool = byName(await listed(revision, 'tools/list', 'tools'), 'numbers')
    const list = { type: 'array', items: { type: 'number' } }
    const wrapped = { type: 'object', properties: { result: list }, required: ['result'] }
    const shown = revision === '2026-07-28' ? { outputSchema: list } : ifSince(revision, '2025-06-18', { outputSchema: wrapped })
    expect(tool).toEqual({ name: 'numbers', ...(revision === 's3' ? { description: '' } : {}), inputSchema: nothingIn, ...shown })
  })

  it('keeps references inside a wrapped output schema pointing at what they named (trap 27)', async () => {
    const tool = byName(await listed(revision, 'tools/list', 'tools'), 'tree')
    if (!since(revision, '2025-06-18')) return expect(tool).not.toHaveProperty('outputSchema')
    if (revision === '2026-07-28') return expect(tool?.['outputSchema']).toEqual(treeOutput)
    const schema = tool?.['outputSchema'] as Frame
    expect(schema['type']).toBe('object')
    const { default: Ajv2020 } = await import('ajv/dist/2020.js')
    const check = new Ajv2020.default({ strict: false }).compile({ ...schema, $schema: dialect2020 })
    expect(check({ result: { label: 'root', children: [{ label: 'leaf' }] } })).toBe(true)
    expect(check({ result: { label: 'root', children: [{ label: 7 }] } })).toBe(false)
  })

  it('lists in a stable order, the whole at once', async () => {
    const names = (await listed(revision, 'tools/list', 'tools')).map(tool => tool['name'])
    expect(names).toEqual(['rich', 'numbers', 'tree', 'falsy', 'picture', 'bars', 'word', 'plain', 'fails'])
  })
})

describe.each(everyRevision)('resources, templates and prompts at %s (§1.5 fields)', revision => {
  const described = {
    description: 'A file',
    mimeType: 'text/plain',
    ...(revision === 's3' ? {} : { annotations: since(revision, '2025-06-18') ? annotations : plainAnnotations }),
    ...ifSince(revision, '2025-06-18', { title: 'The file', _meta: meta }),
    ...ifSince(revision, '2025-11-25', { icons }),
  }

  it('shows of a resource exactly the fields of the wire', async () => {
    const [resource] = await listed(revision, 'resources/list', 'resources')
    expect(resource).toEqual({ uri: 'file:///rich.txt', name: 'rich', ...described, ...(revision === 's3' ? {} : { size: 4 }) })
  })

  // The dialect has no templates of its own: what it asks for by an official name it gets in 2025-06-18's shape.
  const asOfficial = revision === 's3' ? '2025-06-18' : revision
  const official = {
    description: 'A file',
    mimeType: 'text/plain',
    annotations: since(asOfficial, '2025-06-18') ? annotations : plainAnnotations,
    ...ifSince(asOfficial, '2025-06-18', { title: 'The file', _meta: meta }),
    ...ifSince(asOfficial, '2025-11-25', { icons }),
  }

  it('shows of a template exactly the fields of the wire', async () => {
    const [template] = await listed(revision, 'resources/templates/list', 'resourceTemplates')
    expect(template).toEqual({ uriTemplate: 'note://{id}', name: 'note', ...official })
  })

  it('shows of a prompt and its arguments exactly the fields of the wire', async () => {
    const [prompt] = await listed(revision, 'prompts/list', 'prompts')
    expect(prompt).toEqual({
      name: 'rich',
      description: 'Says everything',
      arguments: [
        { name: 'topic', description: 'About what', required: true, ...ifSince(asOfficial, '2025-06-18', { title: 'Topic' }) },
      ],
      ...ifSince(asOfficial, '2025-06-18', { title: 'Rich prompt', _meta: meta }),
      ...ifSince(asOfficial, '2025-11-25', { icons }),
    })
  })

  it('stamps lists with how long they may be kept on E alone (trap 10)', async () => {
    const wire = await speak(server, revision)
    for (const method of ['resources/templates/list', 'prompts/list']) {
      const { ttlMs, cacheScope } = resultOf(await wire.ask(method))
      expect([ttlMs, cacheScope]).toEqual(revision === '2026-07-28' ? [5_000, 'public'] : [undefined, undefined])
    }
    await wire.close()
  })
})

const fullInfo = {
  name: 'rich',
  version: '1.2.3',
  title: 'The rich one',
  description: 'Has everything',
  websiteUrl: 'https://example.com',
  icons,
}
const listChanged = { listChanged: true }
const capabilities = {
  logging: {},
  prompts: listChanged,
  tools: listChanged,
  resources: { subscribe: true, listChanged: true },
  completions: {},
}
const ours = { 'dev.vivarium/problem': {} }
const coreTasks = { cancel: {}, requests: { tools: { call: {} } } }

describe('the opening (§1.1)', () => {
  const { completions, ...firstCapabilities } = capabilities
  const { name, version, title } = fullInfo
  it.each([
    ['2024-11-05', { name, version }, { ...firstCapabilities, experimental: ours }],
    ['2025-03-26', { name, version }, { ...capabilities, experimental: ours }],
    ['2025-06-18', { name, version, title }, { ...capabilities, experimental: ours }],
    ['2025-11-25', fullInfo, { ...capabilities, extensions: ours, tasks: coreTasks }],
  ] as const)(
    'at %s tells who the server is and what it can, in the words of the wire',
    async (revision, serverInfo, declared) => {
      const wire = await speak(server, revision)
      expect(wire.hello?.['result']).toEqual({
        protocolVersion: revision,
        serverInfo,
        capabilities: declared,
        instructions: 'Use it well',
      })
      await wire.close()
    },
  )

  it('at 2026-07-28 is a discover whose body has no serverInfo: that is in _meta (trap 5)', async () => {
    const wire = await speak(server, '2026-07-28')
    expect(resultOf(await wire.ask('server/discover'))).toEqual({
      resultType: 'complete',
      supportedVersions: ['2026-07-28', 'DRAFT-2026-v1'],
      capabilities: { ...capabilities, extensions: { ...ours, 'io.modelcontextprotocol/tasks': {} } },
      instructions: 'Use it well',
      ttlMs: 5_000,
      cacheScope: 'public',
      _meta: { 'io.modelcontextprotocol/serverInfo': fullInfo },
    })
    await wire.close()
  })

  it('at the draft has serverInfo in the body, nothing of caching, and tasks in the core (§2.8)', async () => {
    const wire = await speak(server, 'draft-2026-v1')
    expect(resultOf(await wire.ask('server/discover'))).toEqual({
      resultType: 'complete',
      supportedVersions: ['2026-07-28', 'DRAFT-2026-v1'],
      capabilities: { ...capabilities, extensions: ours, tasks: coreTasks },
      instructions: 'Use it well',
      serverInfo: fullInfo,
    })
    await wire.close()
  })

  it('on the dialect holds the fields of the seed and no version (§3.1)', async () => {
    const wire = await speak(server, 's3')
    expect(wire.hello?.['result']).toEqual({
      server: { name, version },
      serverCapabilities: { supportsToolDiscovery: true, supportsResourceDiscovery: true, supportsNotifications: true },
    })
    await wire.close()
  })

  it('tells tasks/list only to callers who are someone (§1.6)', async () => {
    const wire = await speak(server, '2025-11-25', { principal: 'ada' })
    expect((resultOf(wire.hello ?? {})['capabilities'] as Frame)['tasks']).toEqual({ list: {}, ...coreTasks })
    await wire.close()
  })
})
