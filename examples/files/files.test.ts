import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { connectInMemory } from 'vivarium/testing'
import { command, type LiveHostOptions, liveHost, temporaryFolder, wires } from '../../test/examples/live-host.ts'
import { filesExtractors } from './extract.ts'
import { type FilesOptions, openFiles } from './files.ts'
import { openJournal } from './journal.ts'
import { placeOf } from './places.ts'

/** A project with a file, a secret beside it, and links that lead there. */
function project() {
  const base = temporaryFolder()
  const root = join(base, 'project')
  mkdirSync(join(root, 'src'), { recursive: true })
  mkdirSync(join(base, 'outside'))
  writeFileSync(join(root, 'src/main.ts'), 'let a = 1\n')
  writeFileSync(join(base, 'outside/secret.txt'), 'secret')
  symlinkSync(join(base, 'outside/secret.txt'), join(root, 'link.txt'))
  symlinkSync(join(base, 'outside'), join(root, 'linked'))
  symlinkSync(join(base, 'outside/new.txt'), join(root, 'dangling.txt'))
  symlinkSync('src', join(root, 'inner'))
  const roots = [{ uri: pathToFileURL(root).href }]
  return {
    base,
    root,
    roots,
    main: join(root, 'src/main.ts'),
    secret: join(base, 'outside/secret.txt'),
    journal: join(base, 'j.db'),
  }
}

async function opened(options: FilesOptions) {
  const files = await openFiles(options)
  onTestFinished(async () => files[Symbol.asyncDispose]())
  return files.server
}

async function hosted(given: Partial<LiveHostOptions> = {}) {
  const place = project()
  const { roots, journal } = place
  return { ...place, ...(await liveHost(await opened({ journal }), { roots, approve: () => true, ...given })) }
}

const checkpointOf = ({ structured }: { structured?: unknown }) => (structured as { checkpoint: string }).checkpoint

describe.each(wires)('a live host on %s', revision => {
  test('decides about each place by its canonical path, however it was spelled', async () => {
    const { mcp, asked, root, main } = await hosted({ revision })
    for (const path of ['src/main.ts', 'src/../src//main.ts', main, 'inner/main.ts'])
      expect((await mcp.callTool('read_file', { path })).text).toBe('let a = 1\n')
    await mcp.callTool('write_file', { path: 'new.ts', content: 'x' })
    await mcp.callTool('edit_file', { path: 'inner/main.ts', find: '1', replace: '2' })
    const read = { featureSet: 'files.read', scope: { label: main, payload: { path: main, mode: 'read' } } }
    const fresh = join(root, 'new.ts')
    expect(asked).toEqual([
      ...[read, read, read, read],
      { featureSet: 'files.edit', scope: { label: fresh, payload: { path: fresh, mode: 'write' } } },
      { featureSet: 'files.edit', scope: { label: main, payload: { path: main, mode: 'write' } } },
    ])
    expect(readFileSync(main, 'utf8')).toBe('let a = 2\n')
  })

  test('that says no is told so, and nothing is touched', async () => {
    const { mcp, main } = await hosted({ revision, approve: ({ payload }) => payload?.['mode'] === 'read' })
    const out = await mcp.callTool('edit_file', { path: 'src/main.ts', find: '1', replace: '2' })
    expect(out).toMatchObject({ isError: true, problem: { code: 'SCOPE_DENIED' } })
    expect(out.text).toContain('The test says no')
    expect(readFileSync(main, 'utf8')).toBe('let a = 1\n')
  })

  test('goes back and forth between the checkpoints of edits', async () => {
    const { mcp, live, main, root } = await hosted({ revision })
    const first = await mcp.callTool('edit_file', { path: 'src/main.ts', find: '1', replace: '2' })
    const one = checkpointOf(first)
    expect(first.live).toEqual({ featureSet: 'files.edit', checkpoint: one, parent: null })
    const made = await mcp.callTool('write_file', { path: 'b.txt', content: 'b' }, { live: { checkpoint: one } })
    expect(made.live).toEqual({ featureSet: 'files.edit', checkpoint: checkpointOf(made), parent: one })
    expect(await live.rollback('files.edit', one)).toMatchObject({ success: true })
    expect([readFileSync(main, 'utf8'), existsSync(join(root, 'b.txt'))]).toEqual(['let a = 2\n', false])
    const other = await mcp.callTool('write_file', { path: 'src/main.ts', content: 'other' }, { live: { checkpoint: one } })
    expect(await live.rollback('files.edit', checkpointOf(made))).toMatchObject({ success: true })
    expect([readFileSync(main, 'utf8'), readFileSync(join(root, 'b.txt'), 'utf8')]).toEqual(['let a = 2\n', 'b'])
    expect(await live.rollback('files.edit', checkpointOf(other))).toMatchObject({ success: true })
    expect([readFileSync(main, 'utf8'), existsSync(join(root, 'b.txt'))]).toEqual(['other', false])
    expect(await live.rollback('files.edit', 'edit_unheard_of')).toMatchObject({ success: false, missing: true })
  })
})

test('a host that reads the arguments itself sends its leave along, and is not asked again', async () => {
  const { mcp, asked, root } = await hosted()
  const extractors = filesExtractors('files', root)
  const calls = [
    ['read_file', { path: 'inner/main.ts' }],
    ['list_files', {}],
    ['write_file', { path: 'fresh.txt', content: 'x' }],
    ['edit_file', { path: 'src/../fresh.txt', find: 'x', replace: 'y' }],
  ] as const
  for (const [tool, args] of calls) {
    const scope = extractors[`files/${tool}`]?.(args)
    if (scope === undefined) throw new Error('nothing was extracted')
    expect(await mcp.callTool(tool, args, { live: { scope: { ...scope } } })).toMatchObject({ isError: false })
  }
  expect(asked).toEqual([])
})

const escapes = [
  '../outside/secret.txt',
  'src/../../outside/secret.txt',
  'link.txt',
  'linked/secret.txt',
  'linked/new.txt',
  'dangling.txt',
  '/etc/hostname',
  'inner/../../outside/secret.txt',
  'linked/../secret.txt/../../outside/secret.txt',
  'src/main.ts\0.txt',
]

test.each(escapes)('%j does not lead out, by no tool', async path => {
  const { mcp, asked, base, secret } = await hosted()
  const calls = [
    mcp.callTool('read_file', { path }),
    mcp.callTool('list_files', { path }),
    mcp.callTool('write_file', { path, content: 'x' }),
    mcp.callTool('edit_file', { path, find: 's', replace: 'x' }),
  ]
  for (const out of await Promise.all(calls)) expect(out).toMatchObject({ isError: true, problem: { code: 'PATH_REFUSED' } })
  expect(asked).toEqual([])
  expect(readFileSync(secret, 'utf8')).toBe('secret')
  expect(existsSync(join(base, 'outside/new.txt'))).toBe(false)
})

test('paths of any kind lead into the folder or are refused', async () => {
  const { root, base } = project()
  const piece = fc.constantFrom(
    '..',
    '.',
    'src',
    'linked',
    'inner',
    'link.txt',
    'dangling.txt',
    'main.ts',
    '',
    'new',
    base,
    root,
    '/',
  )
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { minLength: 1, maxLength: 8 }), async pieces => {
      const found = await placeOf(pieces.join('/'), { folders: [root], except: [] }).catch(() => root)
      expect(found === root || found.startsWith(`${root}/`)).toBe(true)
      // Nothing in it is a link, so that it names one place only.
      const there = existsSync(found) ? found : dirname(found)
      expect(realpathSync(there)).toBe(there)
    }),
  )
})

test('a file that becomes a link while somebody is asked is not followed', async () => {
  const { mcp, secret, main } = await hosted({
    approve: ({ payload }) => {
      rmSync(String(payload?.['path']))
      symlinkSync(secret, String(payload?.['path']))
      return true
    },
  })
  expect(await mcp.callTool('read_file', { path: 'src/main.ts' })).toMatchObject({
    isError: true,
    problem: { code: 'PATH_REFUSED' },
  })
  rmSync(main)
  writeFileSync(main, 'again')
  expect(await mcp.callTool('write_file', { path: 'src/main.ts', content: 'x' })).toMatchObject({ isError: true })
  expect(readFileSync(secret, 'utf8')).toBe('secret')
})

test('a folder that becomes a link while somebody is asked is not listed', async () => {
  const { mcp } = await hosted({
    approve: ({ label }) => {
      rmSync(label, { recursive: true })
      symlinkSync(join(label, '../../outside'), label)
      return true
    },
  })
  expect(await mcp.callTool('list_files', { path: 'src' })).toMatchObject({ isError: true, problem: { code: 'PATH_REFUSED' } })
})

test('a file that has a second name outside is left alone there, and keeps its mode', async () => {
  const { mcp, root, secret } = await hosted()
  chmodSync(secret, 0o676)
  linkSync(secret, join(root, 'hard.txt'))
  const { mode } = statSync(secret)
  await mcp.callTool('write_file', { path: 'hard.txt', content: 'mine' })
  expect([readFileSync(secret, 'utf8'), readFileSync(join(root, 'hard.txt'), 'utf8')]).toEqual(['secret', 'mine'])
  expect(statSync(join(root, 'hard.txt')).mode).toBe(mode)
})

test('what somebody else has changed is not overwritten by going back', async () => {
  const { mcp, live, main } = await hosted()
  const first = checkpointOf(await mcp.callTool('write_file', { path: 'a.txt', content: '1' }))
  await mcp.callTool('write_file', { path: 'src/main.ts', content: 'mine' })
  writeFileSync(main, 'theirs')
  const back = await live.rollback('files.edit', first)
  expect(back).toMatchObject({ success: false, reason: expect.stringContaining('was changed by somebody else') })
  expect(readFileSync(main, 'utf8')).toBe('theirs')
})

test('the journal itself is out of reach, although it lies in the folder', async () => {
  const { root, roots } = project()
  const { mcp } = await liveHost(await opened({ journal: join(root, 'journal.db') }), { roots, approve: () => true })
  await mcp.callTool('write_file', { path: 'a.txt', content: '1' })
  for (const path of ['journal.db', 'journal.db-wal', 'journal.db.calls'])
    expect(await mcp.callTool('write_file', { path, content: '' })).toMatchObject({
      isError: true,
      problem: { code: 'PATH_REFUSED' },
    })
})

test('folders of the server bound what a client can name', async () => {
  const { root, roots, base, journal, secret } = project()
  const server = await opened({ journal, folders: [join(base, 'outside')] })
  const inside = await liveHost(server, {
    roots: [...roots, { uri: pathToFileURL(join(base, 'outside')).href }],
    approve: () => true,
  })
  expect((await inside.mcp.callTool('read_file', { path: secret })).text).toBe('secret')
  expect(await inside.mcp.callTool('read_file', { path: join(root, 'src/main.ts') })).toMatchObject({ isError: true })
  const none = await liveHost(server, { approve: () => true })
  expect((await none.mcp.callTool('read_file', { path: 'secret.txt' })).text).toBe('secret')
})

test('a plain host reads, has its user asked before edits, and takes them back by a tool', async () => {
  const { roots, journal, main } = project()
  const questions: string[] = []
  let action: 'accept' | 'decline' = 'accept'
  const onElicit = ({ message }: { message: string }) => {
    questions.push(message)
    return action === 'accept' ? { action, content: { confirm: true } } : { action }
  }
  const mcp = await connectInMemory(await opened({ journal }), { roots, onElicit })
  onTestFinished(() => mcp.close())
  expect((await mcp.callTool('list_files')).structured).toMatchObject({ names: expect.arrayContaining(['src/', 'link.txt']) })
  expect(questions).toEqual([])
  const edit = await mcp.callTool('edit_file', { path: 'src/main.ts', find: '1', replace: '2' })
  expect(questions).toEqual([expect.stringContaining(main)])
  action = 'decline'
  expect(await mcp.callTool('write_file', { path: 'src/main.ts', content: '' })).toMatchObject({ isError: true })
  expect(readFileSync(main, 'utf8')).toBe('let a = 2\n')
  await mcp.callTool('undo_edit', { checkpoint: checkpointOf(edit) })
  expect(readFileSync(main, 'utf8')).toBe('let a = 1\n')
  expect(await mcp.callTool('undo_edit', { checkpoint: checkpointOf(edit) })).toMatchObject({ problem: { code: 'FILE_CHANGED' } })
})

test('an edit that was cut off is done or undone when the journal opens again', async () => {
  const { main, journal } = project()
  const { DatabaseSync } = await import('node:sqlite')
  const first = await openJournal(journal)
  const base = await first.edit(main, 'let a = 1\n', 'let a = 2\n')
  first.close()
  const db = new DatabaseSync(journal)
  const cut = db.prepare('insert into edits (id, parent, path, before, after) values (?, ?, ?, ?, ?)')
  cut.run('written', base, main, 'let a = 2\n', 'let a = 3\n')
  cut.run('unwritten', base, main, 'let a = 3\n', 'let a = 4\n')
  db.close()
  writeFileSync(main, 'let a = 3\n')
  const again = await openJournal(journal)
  onTestFinished(() => again.close())
  expect(await again.goTo('unwritten')).toBe(false)
  expect(await again.goTo(base)).toBe(true)
  expect(readFileSync(main, 'utf8')).toBe('let a = 2\n')
})

test('as a process of its own it goes back to what an earlier one has written', async () => {
  const { root, roots, journal, main } = project()
  const target = command('files', [root], { FILES_JOURNAL: journal })
  const first = await liveHost(target, { roots, approve: () => true })
  const one = checkpointOf(await first.mcp.callTool('write_file', { path: 'src/main.ts', content: 'one' }))
  await first.mcp.callTool('write_file', { path: 'src/main.ts', content: 'two' })
  await first.mcp.close()
  const { live } = await liveHost(target, { roots, approve: () => true })
  expect(await live.rollback('files.edit', one)).toMatchObject({ success: true })
  expect(readFileSync(main, 'utf8')).toBe('one')
})
