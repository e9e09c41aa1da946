/** One server that uses every word there is: what each wire lets through of it is what the sentences beside it are about. */
import {
  audio,
  createServer,
  image,
  jsonSchema,
  link,
  reply,
  resource,
  type Server,
  type ServerOptions,
  text,
} from '../../src/server/index.ts'
import { everyRevision } from './wire.ts'

export const icons = [{ src: 'https://example.com/i.png', mimeType: 'image/png', sizes: ['48x48'], theme: 'dark' as const }]
export const annotations = { audience: ['user' as const], priority: 0.5, lastModified: '2026-01-02T03:04:05Z' }
export const meta = { 'example.com/key': 1 }
export const dialect2020 = 'https://json-schema.org/draft/2020-12/schema'
export const pixel = 'iVBORw0KGgo='
export const sound = 'UklGRiQAAABXQVZF'

export const regionInput = {
  $schema: dialect2020,
  type: 'object',
  properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
} as const

export const toolHints = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }

export const treeOutput = {
  $schema: dialect2020,
  $ref: '#/$defs/node',
  $defs: {
    node: {
      type: 'object',
      properties: { label: { type: 'string' }, children: { type: 'array', items: { $ref: '#/$defs/node' } } },
      required: ['label'],
    },
  },
} as const

export function richServer(options: Partial<ServerOptions> = {}): Server {
  const server = createServer({
    name: 'rich',
    version: '1.2.3',
    title: 'The rich one',
    description: 'Has everything',
    websiteUrl: 'https://example.com',
    icons,
    instructions: 'Use it well',
    revisions: everyRevision,
    secret: 'a secret of more than thirty-two characters',
    cache: { ttl: 5_000, scope: 'public' },
    ...options,
  })
  addTools(server)
  addResources(server)
  addPrompts(server)
  return server
}

function addTools(server: Server): void {
  server.tool(
    'rich',
    {
      title: 'Rich tool',
      description: 'Shows a block of every kind',
      annotations: toolHints,
      icons,
      meta,
      task: 'optional',
      input: jsonSchema<{ region?: string }>(regionInput),
      output: jsonSchema<{ ok: boolean }>({ type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] }),
    },
    () =>
      reply({
        content: [
          text('words', { annotations, meta }),
          image(pixel, 'image/png', { annotations, meta }),
          audio(sound, 'audio/wav', { annotations, meta }),
          resource({ uri: 'file:///a.txt', mimeType: 'text/plain', text: 'A', _meta: meta }, { annotations, meta }),
          link('file:///b.txt', {
            name: 'b',
            title: 'The B',
            description: 'second',
            mimeType: 'text/plain',
            size: 2,
            icons,
            annotations,
            _meta: meta,
          }),
        ],
        structured: { ok: true },
        meta,
      }),
  )
  server.tool('numbers', { output: jsonSchema<number[]>({ type: 'array', items: { type: 'number' } }) }, () => [1, 2])
  server.tool('tree', { output: jsonSchema<unknown>(treeOutput) }, () => ({ label: 'root', children: [{ label: 'leaf' }] }))
  server.tool('falsy', { input: jsonSchema<{ value: unknown }>({ type: 'object', properties: { value: {} } }) }, ({ value }) =>
    reply({ structured: value }),
  )
  server.tool('picture', {}, () => reply({ content: [image(pixel, 'image/png')], structured: { width: 1 } }))
  server.tool('bars', {}, () => reply({ content: [image(pixel, 'image/png')], structured: [3, 4] }))
  server.tool('word', { output: jsonSchema<string>({ type: 'string' }) }, () => 'said')
  server.tool('plain', {}, () => 'just text')
  server.tool('fails', {}, () => {
    throw new Error('It broke')
  })
}

function addResources(server: Server): void {
  const facts = { title: 'The file', description: 'A file', mimeType: 'text/plain', annotations, icons, meta }
  server.resource('file:///rich.txt', { ...facts, name: 'rich', size: 4 }, () => [
    { text: 'rich', _meta: meta },
    { uri: 'file:///rich.txt#2', blob: pixel, mimeType: 'image/png' },
  ])
  server.resource('note://{id}', { ...facts, name: 'note', complete: { id: () => ['a', 'b'] } }, ({ id }) => `note ${id}`)
}

function addPrompts(server: Server): void {
  server.prompt(
    'rich',
    {
      title: 'Rich prompt',
      description: 'Says everything',
      icons,
      meta,
      arguments: { topic: { title: 'Topic', description: 'About what', required: true, complete: () => ['x'] } },
    },
    ({ topic }) => [
      `About ${topic}`,
      { role: 'assistant', content: audio(sound, 'audio/wav', { annotations, meta }) },
      { role: 'user', content: link('file:///b.txt', { name: 'b', title: 'The B', icons, annotations, _meta: meta }) },
      { role: 'user', content: resource({ uri: 'file:///a.txt', text: 'A', _meta: meta }, { annotations, meta }) },
    ],
  )
}
