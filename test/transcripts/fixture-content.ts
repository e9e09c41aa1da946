/** What the fixture offers at rest: tools with every kind of result, resources, a template, a prompt. */
import { audio, image, jsonSchema, link, McpError, reply, resource, type Server, text } from '../../src/server/index.ts'

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const silence = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA='
const icons = [{ src: 'https://example.com/wave.svg', mimeType: 'image/svg+xml', sizes: ['any'] }]

export function addContent(server: Server): void {
  addTools(server)
  addPick(server)
  addResources(server)
  server.prompt(
    'brief',
    {
      title: 'A briefing',
      description: 'Asks for a briefing on a topic',
      icons,
      arguments: {
        topic: {
          title: 'Topic',
          description: 'What it is about',
          required: true,
          complete: value => ['whales', 'weather'].filter(word => word.startsWith(value)),
        },
        tone: { description: 'How it should sound' },
      },
    },
    ({ topic, tone }) => [
      `Brief me on ${topic}${tone === undefined ? '' : `, ${tone}`}.`,
      { role: 'assistant', content: link('memo://today', { name: 'today', title: 'The memo of today', icons }) },
      { content: audio(silence, 'audio/wav') },
    ],
  )
}

function addTools(server: Server): void {
  server.tool(
    'greet',
    {
      title: 'Greet',
      description: 'Greets somebody by name',
      icons,
      annotations: { readOnlyHint: true, openWorldHint: false },
      input: jsonSchema<{ name: string }>({
        type: 'object',
        properties: { name: { type: 'string', minLength: 1 } },
        required: ['name'],
      }),
      output: jsonSchema<{ greeting: string }>({
        type: 'object',
        properties: { greeting: { type: 'string' } },
        required: ['greeting'],
      }),
      meta: { 'example.com/shelf': 3 },
    },
    ({ name }) => ({ greeting: `Hello, ${name}` }),
  )
  server.tool(
    'count',
    {
      description: 'Counts from one',
      input: jsonSchema<{ to: number }>({
        type: 'object',
        properties: { to: { type: 'integer', minimum: 0, maximum: 9, 'x-mcp-header': 'To' } },
        required: ['to'],
      }),
      output: jsonSchema<number[]>({ type: 'array', items: { type: 'integer' } }),
    },
    ({ to }) => Array.from({ length: to }, (_, at) => at + 1),
  )
  server.tool('media', { description: 'Shows a block of every kind' }, () =>
    reply({
      content: [
        text('plain', {
          annotations: { audience: ['user'], priority: 0.5, lastModified: '2026-01-01T00:00:00Z' },
          meta: { 'example.com/seen': true },
        }),
        image(pixel, 'image/png'),
        audio(silence, 'audio/wav'),
        resource({ uri: 'memo://today', mimeType: 'text/plain', text: 'Feed the fish', _meta: { 'example.com/page': 1 } }),
        link('memo://pixel', { name: 'pixel', title: 'A pixel', mimeType: 'image/png', icons }),
      ],
      meta: { 'example.com/took': 1 },
    }),
  )
  server.tool(
    'fail',
    {
      description: 'Fails in one of three ways',
      input: jsonSchema<{ how: 'result' | 'error' | 'protocol' }>({
        type: 'object',
        properties: { how: { enum: ['result', 'error', 'protocol'] } },
        required: ['how'],
      }),
    },
    ({ how }) => {
      if (how === 'result') return reply({ content: [text('It did not work')], isError: true })
      if (how === 'error') throw new Error('The fish is gone')
      throw new McpError('invalid-params', 'The tool refuses by an error of the protocol')
    },
  )
}

/** A result that may be an object or not: where only objects are known, it is wrapped either way. */
function addPick(server: Server): void {
  server.tool(
    'pick',
    {
      description: 'Picks a fish, if there is one',
      input: jsonSchema<{ from: string[] }>({
        type: 'object',
        properties: { from: { type: 'array', items: { type: 'string' } } },
        required: ['from'],
      }),
      output: jsonSchema<{ fish: string } | null>({
        anyOf: [{ type: 'object', properties: { fish: { type: 'string' } }, required: ['fish'] }, { type: 'null' }],
      }),
    },
    ({ from: [fish] }) => (fish === undefined ? null : { fish }),
  )
}

function addResources(server: Server): void {
  server.resource(
    'memo://today',
    {
      name: 'today',
      title: 'The memo of today',
      description: 'What is to be done',
      mimeType: 'text/plain',
      size: 13,
      icons,
      annotations: { audience: ['user'], priority: 1, lastModified: '2026-01-01T00:00:00Z' },
      cache: { ttl: '5s', scope: 'private' },
    },
    () => 'Feed the fish',
  )
  server.resource('memo://pixel', { name: 'pixel', mimeType: 'image/png' }, () => ({ blob: pixel }))
  server.resource(
    'memo://{day}/{part}',
    {
      name: 'day',
      title: 'A part of a day',
      description: 'What is to be done in a part of a day',
      mimeType: 'text/plain',
      icons,
      complete: {
        day: value => ['monday', 'tuesday', 'thursday'].filter(day => day.startsWith(value)),
        part: (value, { arguments: { day } }) =>
          (day === 'monday' ? ['morning'] : ['morning', 'evening']).filter(part => part.startsWith(value)),
      },
    },
    ({ day, part }) => (part === 'night' ? undefined : `Rest in the ${part} of ${day}`),
  )
}
