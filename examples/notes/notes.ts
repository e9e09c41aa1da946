/**
 * Notes of one conversation. A live host keeps them: it sends them with each call, gets the change back as a patch (RFC 6902), and can
 * go back to any earlier version. For all other hosts the server keeps them as long as the conversation lasts.
 */
import { createServer, type Server } from 'vivarium/server'
import { z } from 'zod'

/** By name. Names are plain enough to stand in the paths of a patch as they are. */
type Notes = Readonly<Record<string, string>>
const name = z.string().regex(/^[a-z-]{1,64}$/)
const text = z.string().max(100_000)

export interface NotesOptions {
  /** Where it is written down which checkpoints were given out, such as `sqlite:notes.db`: so a host can go back to those of an earlier process. */
  readonly store?: string
}

export function createNotes(options: NotesOptions = {}): Server {
  // What the last call left behind, for resources: those come without the host's state.
  let latest: Notes = {}
  const server = createServer({
    ...options,
    name: 'notes',
    version: '1.0.0',
    instructions: 'Write a note with write_note, then read it at note://{name}.',
  })
  const notes = server.featureSet('notes.edit', {
    description: 'Writes, extends and deletes notes; the host keeps them',
    hostState: true,
    rollback: true,
  })
  // Which notes there are now, the next call will tell.
  notes.onRollback(() => {
    latest = {}
    return true
  })
  const changed = (name: string, now: Notes): void => {
    latest = now
    server.resourceUpdated(`note://${name}`)
  }

  notes.tool(
    'write_note',
    {
      description: 'Writes a note, or replaces it',
      input: z.object({ name, text }),
      output: z.object({ uri: z.string(), replaced: z.boolean() }),
    },
    async ({ name, text }, ctx) => {
      const before = (await ctx.state.get<Notes>()) ?? {}
      changed(name, await ctx.state.patch<Notes>([{ op: 'add', path: `/${name}`, value: text }]))
      return { uri: `note://${name}`, replaced: Object.hasOwn(before, name) }
    },
  )

  notes.tool(
    'extend_note',
    { description: 'Adds a line to a note, and creates the note if it does not exist', input: z.object({ name, line: text }) },
    async ({ name, line }, ctx) => {
      const before = (await ctx.state.get<Notes>()) ?? {}
      const value = Object.hasOwn(before, name) ? `${before[name]}\n${line}` : line
      changed(name, await ctx.state.patch<Notes>([{ op: 'add', path: `/${name}`, value }]))
      return `${value.split('\n').length} lines`
    },
  )

  notes.tool(
    'find_notes',
    {
      description: 'Lists the notes that contain a text',
      input: z.object({ text: z.string() }),
      output: z.object({ names: z.array(z.string()) }),
      annotations: { readOnlyHint: true },
    },
    async ({ text }, ctx) => {
      latest = (await ctx.state.get<Notes>()) ?? {}
      return { names: Object.entries(latest).flatMap(([name, content]) => (content.includes(text) ? [name] : [])) }
    },
  )

  notes.tool(
    'delete_note',
    { description: 'Deletes a note after the user has confirmed', input: z.object({ name }) },
    async ({ name }, ctx) => {
      const before = (await ctx.state.get<Notes>()) ?? {}
      if (!Object.hasOwn(before, name))
        throw ctx.problem('RESOURCE_NOT_FOUND', `The note ${name} does not exist`, {
          suggestion: 'Look up the name with find_notes',
        })
      if (!(await ctx.confirm(`Delete ${name}?`))) return 'Kept'
      changed(name, await ctx.state.patch<Notes>([{ op: 'remove', path: `/${name}` }]))
      return 'Deleted'
    },
  )

  server.resource(
    'note://{name}',
    { name: 'note', mimeType: 'text/plain', list: () => Object.keys(latest).map(name => ({ uri: `note://${name}`, name })) },
    ({ name }) => (Object.hasOwn(latest, name) ? latest[name] : undefined),
  )

  server.prompt('summarise', { description: 'Summarizes a note', arguments: { name: { required: true } } }, ({ name }) =>
    ['Summarize this note in one sentence:', (Object.hasOwn(latest, name) && latest[name]) || '(it is empty)'].join('\n'),
  )
  return server
}
