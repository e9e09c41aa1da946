/**
 * Reads and edits files in the folders that a client works in, and nowhere else. Live hosts decide about each place by its canonical
 * path, and can set the files back to any earlier edit; plain ones ask their user before an edit, and have a tool to take it back.
 */
import { readdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { createServer, type LiveContext, type Server } from 'vivarium/server'
import { z } from 'zod'
import { readFileIn } from './contents.ts'
import { type Journal, openJournal } from './journal.ts'
import { checkPlace, missing, placeOf } from './places.ts'

export interface FilesOptions {
  /** A file for what is needed to take edits back: one for each project. */
  readonly journal: string
  /** Clients can name no folders beyond these. Default: they may name any; those that name none get none. */
  readonly folders?: readonly string[]
}

export interface FilesServer extends AsyncDisposable {
  readonly server: Server
}

export async function openFiles({ journal: file, folders }: FilesOptions): Promise<FilesServer> {
  const journal = await openJournal(file)
  const server = createServer({ name: 'files', version: '1.0.0', store: `sqlite:${file}.calls` })
  const place = placing({ folders, except: ['', '-wal', '-shm', '.calls', '.calls-wal', '.calls-shm'].map(end => file + end) })
  offerReading(server, place)
  offerEditing(server, place, journal)
  return {
    server,
    [Symbol.asyncDispose]: async () => {
      await server.close()
      journal.close()
    },
  }
}

type Placing = (path: string, mode: 'read' | 'write', ctx: LiveContext) => Promise<string>

/** Finds the place, and gets leave for it. */
function placing({ folders, except }: { folders: readonly string[] | undefined; except: readonly string[] }): Placing {
  return async (path, mode, ctx) => {
    const place = await placeOf(path, { folders: await rootsOf(ctx, folders), except })
    // Both must hold: what the client works in, and what this server was started for.
    if (folders !== undefined) await placeOf(place, { folders, except })
    // A plain host that names a folder lets it be read by that.
    if (ctx.live || mode !== 'read') await ctx.scope(place, { path: place, mode })
    await checkPlace(place)
    return place
  }
}

async function rootsOf(ctx: LiveContext, folders: readonly string[] = []): Promise<readonly string[]> {
  if (!ctx.supports('roots')) return folders
  const roots = await ctx.roots()
  return roots.flatMap(({ uri }) => (uri.startsWith('file://') ? [fileURLToPath(uri)] : []))
}

const path = z.string().min(1).describe('Relative to the first folder, or absolute')

function offerReading(server: Server, place: Placing): void {
  const reading = server.featureSet('files.read', { description: 'Reads files in your folders', scoped: true })
  const annotations = { readOnlyHint: true }
  reading.tool(
    'read_file',
    { description: 'Reads a text file', input: z.object({ path }), annotations },
    async ({ path }, ctx) => {
      const found = await place(path, 'read', ctx)
      const content = await readFileIn(found)
      if (content === null) throw missing(found)
      return content
    },
  )
  reading.tool(
    'list_files',
    {
      description: 'Lists a folder; the names of folders end in /',
      input: z.object({ path: path.default('.') }),
      output: z.object({ path: z.string(), names: z.array(z.string()), more: z.number() }),
      annotations,
    },
    async ({ path }, ctx) => {
      const found = await place(path, 'read', ctx)
      const entries = await readdir(found, { withFileTypes: true }).catch(() => undefined)
      if (entries === undefined) throw missing(found)
      const names = entries.map(entry => (entry.isDirectory() ? `${entry.name}/` : entry.name)).sort()
      return { path: found, names: names.slice(0, 1000), more: Math.max(0, names.length - 1000) }
    },
  )
}

const edited = z.object({ path: z.string(), checkpoint: z.string() })

function offerEditing(server: Server, place: Placing, journal: Journal): void {
  const editing = server.featureSet('files.edit', { description: 'Changes files in your folders', scoped: true, rollback: true })
  const inTurn = oneAtATime()
  editing.onRollback(checkpoint => inTurn(() => journal.goTo(checkpoint)))
  const annotations = { destructiveHint: true }
  // How a host that keeps no checkpoints, or has none before the first edit, takes one back.
  const undo = {
    tool: 'undo_edit',
    arguments: ({ result }: { result?: z.infer<typeof edited> | undefined }) => result && { checkpoint: result.checkpoint },
  }
  editing.tool(
    'write_file',
    {
      description: 'Writes a text file, or replaces all of it',
      input: z.object({ path, content: z.string().max(1_000_000) }),
      output: edited,
      annotations,
      undo,
    },
    async ({ path, content }, ctx) => {
      const found = await place(path, 'write', ctx)
      return inTurn(async () => saved(ctx, found, await journal.edit(found, await readFileIn(found), content)))
    },
  )
  editing.tool(
    'edit_file',
    {
      description: 'Replaces a text that occurs exactly once in a file',
      input: z.object({ path, find: z.string().min(1), replace: z.string().max(1_000_000) }),
      output: edited,
      annotations,
      undo,
    },
    async ({ path, find, replace }, ctx) => {
      const found = await place(path, 'write', ctx)
      return inTurn(async () => {
        const before = await readFileIn(found)
        if (before === null) throw missing(found)
        const at = before.indexOf(find)
        if (at === -1 || before.includes(find, at + 1))
          throw ctx.problem('INVALID_INPUT', `The text occurs ${at === -1 ? 'nowhere' : 'more than once'} in ${found}`, {
            suggestion: 'Read the file, and pass enough context that the text occurs exactly once',
          })
        const after = before.slice(0, at) + replace + before.slice(at + find.length)
        return saved(ctx, found, await journal.edit(found, before, after))
      })
    },
  )
  // A set of its own, because it asks for no scope: leave was given for the edit.
  const undoing = server.featureSet('files.undo', { description: 'Undoes edits' })
  undoing.tool(
    'undo_edit',
    {
      description: 'Undoes one edit, if the file has not changed since',
      input: z.object({ checkpoint: z.string().describe('The id that the edit returned') }),
      output: edited,
      annotations: { destructiveHint: true },
    },
    async ({ checkpoint }, ctx) => {
      const reverted = await inTurn(() => journal.revert(checkpoint))
      if (reverted === undefined) throw ctx.problem('CHECKPOINT_NOT_FOUND', 'The edit does not exist or has been undone')
      return reverted
    },
  )
}

function saved(ctx: LiveContext, path: string, checkpoint: string): z.infer<typeof edited> {
  ctx.checkpoint.save(checkpoint)
  return { path, checkpoint }
}

type InTurn = <T>(work: () => Promise<T>) => Promise<T>

/** Edits follow each other, so that each one's checkpoint is the last one's child. */
function oneAtATime(): InTurn {
  let last: Promise<unknown> = Promise.resolve()
  return work => {
    const done = last.then(work)
    last = done.catch(() => undefined)
    return done
  }
}
