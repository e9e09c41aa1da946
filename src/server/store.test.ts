/** What is wrong with a server's store is said when the server starts, in words, at error level. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createSocket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { Log } from '../core/log.ts'
import { createServer, type Server } from './index.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'vivarium-store-'))
  await writeFile(join(folder, 'file'), 'no folder')
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** A server with a log of its own, and its lines at error level. */
function serving(store: string): { readonly server: Server; readonly errors: string[]; readonly said: Promise<string> } {
  const errors: string[] = []
  const first = Promise.withResolvers<string>()
  const quiet = (): void => {}
  const log: Log = {
    level: 'error',
    debug: quiet,
    info: quiet,
    warn: quiet,
    error: (event, fields) => {
      errors.push(`${event} ${JSON.stringify(fields)}`)
      first.resolve(errors[0] ?? '')
    },
    child: () => log,
  }
  const server = createServer({ name: 's', version: '1', store, log })
  onTestFinished(() => server.close())
  return { server, errors, said: first.promise }
}

describe('a path at which no file can be', () => {
  it.each([
    ['below a file', () => join(folder, 'file', 'x.db'), /file is not a folder\. Correct the path/],
    ['a folder', () => folder, /it is a folder\. Name a file in it/],
  ])('%s is told by createServer, and keeps it from being served', async (_name, path, words) => {
    const { server, said } = serving(`sqlite:${path()}`)
    expect(await said).toMatch(words)
    expect(await said).toMatch(/^store-unavailable /)
    expect(await said).toContain(`The store sqlite:${path()} cannot be opened`)
    await expect(server.listen()).rejects.toThrow(words)
    await expect(server.stdio()).rejects.toThrow(words)
  })
})

it('a mistake in the option is logged without a stack, and not at all where listen rejects with it', async () => {
  const path = `sqlite:${join(folder, 'file', 'x.db')}`
  expect(await serving(path).said).toMatch(/^store-unavailable \{"error":"[^"]+"\}$/)
  const { server, errors } = serving(path)
  await expect(server.listen()).rejects.toThrow(/Correct the path/)
  expect(errors).toEqual([])
})

it('a shared store without a secret is told when the server is made', () => {
  const warned: unknown[] = []
  const quiet = (): void => {}
  const warn = (event: string, fields: unknown): void => void warned.push([event, fields])
  const log: Log = { level: 'warn', debug: quiet, info: quiet, warn, error: quiet, child: () => log }
  const made = (options: object) => onTestFinished(createServer({ name: 's', version: '1', log, ...options }).close)
  made({ store: 'postgres://127.0.0.1:1/x', secret: 'a secret of at least 32 characters' })
  made({ store: `sqlite:${join(folder, 'x.db')}` })
  expect(warned).toEqual([])
  made({ store: 'postgres://127.0.0.1:1/x' })
  expect(warned).toEqual([['secret-missing', { hint: expect.stringContaining('replicas') }]])
})

it('a database that is not there is told when the server starts, which serves all the same', async () => {
  const { server, errors } = serving(`postgres://ann:secret@127.0.0.1:${await freePort()}/notes`)
  const { url } = await server.listen()
  expect(url).toMatch(/^http/)
  expect(errors).toEqual([
    expect.stringMatching(
      /^store-unavailable .*The store postgres:\/\/127\.0\.0\.1:\d+\/notes cannot be opened: connect ECONNREFUSED/,
    ),
  ])
  expect(errors[0]).toContain('Start the database, or correct its address, user and password')
  expect(errors[0]).not.toContain('secret')
})

it('a path that can be is not told of, and nothing is made there before the server is served', async () => {
  const { server, errors } = serving(`sqlite:${join(folder, 'new/one.db')}`)
  const { close } = await server.listen()
  expect(errors).toEqual([])
  await close()
})

it('a tool without a description is a warning with what to do', () => {
  const warned: unknown[] = []
  const quiet = (): void => {}
  const log: Log = {
    level: 'warn',
    debug: quiet,
    info: quiet,
    error: quiet,
    warn: (event, fields) => void warned.push([event, fields]),
    child: () => log,
  }
  const server = createServer({ name: 's', version: '1', log })
  server.tool('bare', {}, () => 'x')
  server.tool('told', { description: 'Does it' }, () => 'x')
  expect(warned).toEqual([['tool-undescribed', { tool: 'bare', fix: expect.stringContaining('description') }]])
})

async function freePort(): Promise<number> {
  const socket = createSocket()
  await new Promise<void>(done => socket.listen(0, '127.0.0.1', done))
  const { port } = socket.address() as { port: number }
  await new Promise(done => socket.close(done))
  return port
}
