/** A small server that keeps notes in memory: three tools, a resource for each note, and a prompt. Serves on stdio. */
import { createServer } from 'vivarium/server'
import { z } from 'zod'

const notes = new Map<string, string>()
const server = createServer({
  name: 'notes',
  version: '1.0.0',
  instructions: 'Write a note with write_note, then read it at note://{name}.',
})

server.tool(
  'write_note',
  {
    description: 'Writes a note, or replaces it',
    input: z.object({ name: z.string().regex(/^[a-z-]+$/), text: z.string() }),
    output: z.object({ uri: z.string(), replaced: z.boolean() }),
  },
  ({ name, text }) => {
    const replaced = notes.has(name)
    notes.set(name, text)
    server.resourceUpdated(`note://${name}`)
    return { uri: `note://${name}`, replaced }
  },
)

server.tool(
  'find_notes',
  {
    description: 'Names the notes that hold a text',
    input: z.object({ text: z.string() }),
    output: z.object({ names: z.array(z.string()) }),
    annotations: { readOnlyHint: true },
  },
  ({ text }) => ({ names: [...notes].filter(([, content]) => content.includes(text)).map(([name]) => name) }),
)

server.tool(
  'delete_note',
  { description: 'Deletes a note, if the user agrees', input: z.object({ name: z.string() }) },
  async ({ name }, ctx) => {
    if (!notes.has(name)) throw ctx.problem('NOT_FOUND', `There is no note ${name}`, { suggestion: 'Look with find_notes' })
    if (!(await ctx.confirm(`Delete ${name}?`))) return 'Kept'
    notes.delete(name)
    return 'Deleted'
  },
)

server.resource(
  'note://{name}',
  {
    name: 'note',
    mimeType: 'text/plain',
    list: () => [...notes.keys()].map(name => ({ uri: `note://${name}`, name })),
  },
  ({ name }) => notes.get(name),
)

server.prompt('summarise', { description: 'Sums up a note', arguments: { name: { required: true } } }, ({ name }) =>
  [`Sum up this note in one sentence:`, notes.get(name) ?? '(it is empty)'].join('\n'),
)

await server.stdio()
