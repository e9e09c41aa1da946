import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'

const root = join(import.meta.dirname, '../..')

it('the notes example finds everything right with its own server', async () => {
  const args = ['--disable-warning=ExperimentalWarning', join(root, 'examples/notes/client.ts')]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 30_000 })
  expect(stdout).toMatch(/^All is well at \d{4}-\d\d-\d\d\n$/)
})

it('the gateway example finds everything right with servers of three ages', async () => {
  const args = ['--disable-warning=ExperimentalWarning', join(root, 'examples/gateway/client.ts')]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 })
  expect(stdout).toBe('The gateway does what it should.\n')
})

it('the tickets example takes back what was done, although its server is killed in the midst of that, and goes on', async () => {
  const args = ['--disable-warning=ExperimentalWarning', join(root, 'examples/tickets/client.ts')]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 })
  expect(stdout.trim().split('\n')).toEqual([
    'Nobody may do anything at first',
    '  refused: create_ticket needs tickets:read, tickets:write',
    '  granted: tickets:read, tickets:write',
    '  denied: tickets:admin, only a team lead has that',
    'Work is done on one board',
    '  Now on login',
    'Five steps that belong together',
    '  login: T-1 Login fails at night, T-2 Login is slow',
    '  notify: The mail server knows no such team',
    '  The rollback is under way, and the server is killed',
    'A new server has found the transaction: rolled_back. The team could not be told',
    '  1 create_ticket  compensated',
    '  2 create_ticket  compensated',
    '  3 link_tickets   compensated',
    '  4 update_ticket  compensated',
    '  5 notify         failed',
    '  Left behind: 0 tickets, 0 links',
    'The client goes on where it was',
    '  login: T-3 Login fails',
    'Deleting asks first',
    '  destructive: tickets: delete_ticket. Delete T-3 for good? No',
    '  destructive: tickets: delete_ticket. Delete T-3 for good? Yes',
    '  login: nothing',
    'All is well',
  ])
})

it('the pipeline example moves data past its client, and goes on with an import whose server was killed', async () => {
  const args = ['--disable-warning=ExperimentalWarning', join(root, 'examples/pipeline/client.ts'), '24']
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 })
  const lines = stdout.trim().split('\n')
  expect(lines.filter(line => !/^ {2}(export|import) +\d+ %$/.test(line))).toEqual([
    'The warehouse exports its readings',
    '  24 MB, by reference',
    'The lab imports them',
    '  The lab is killed',
    'A new lab goes on',
    expect.stringMatching(/^ {2}It had 3[45] % already; 1,177,888 rows, as they were$/),
    'All is well, and none of it was ever here',
  ])
  expect(lines).toContain('  import 100 %')
})

it('the registry example finds a server by recommendation and registry, and connects only by decision', async () => {
  const args = ['--disable-warning=ExperimentalWarning', join(root, 'examples/registry/client.ts')]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 30_000 })
  expect(stdout.trim().split('\n')).toEqual([
    'tracker recommends com.example/design 1.1.0, trusted: true',
    '+-----+',
    '| Buy |',
    '+-----+',
  ])
})

it('the registry example serves a folder of descriptions by the official API', async () => {
  const args = ['--disable-warning=ExperimentalWarning', join(root, 'examples/registry/server.ts')]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill())
  const [url] = await once(createInterface(child.stdout), 'line')
  const read = async (path: string) => (await fetch(`${url}/v0.1/servers${path}`)).json()
  const official = 'io.modelcontextprotocol.registry/official'
  expect(await read('?search=DESIGN&version=latest')).toMatchObject({
    servers: [{ server: { name: 'com.example/design', version: '1.1.0' }, _meta: { [official]: { isLatest: true } } }],
    metadata: { count: 1 },
  })
  const first = await read('?limit=2')
  expect(first).toMatchObject({ servers: [{}, {}], metadata: { nextCursor: '2' } })
  expect(await read('?limit=2&cursor=2')).toMatchObject({
    servers: [{ server: { name: 'com.example/wiki' } }],
    metadata: { count: 1 },
  })
  const name = encodeURIComponent('com.example/design')
  expect(await read(`/${name}/versions`)).toMatchObject({
    servers: [{ server: { version: '1.1.0' } }, { server: { version: '1.0.0' } }],
  })
  expect(await read(`/${name}/versions/latest`)).toMatchObject({ server: { version: '1.1.0' } })
  expect(await read(`/${name}/versions/9.9.9`)).toEqual({ error: 'Server not found' })
  expect((await fetch(`${url}/v0.1/servers?limit=0`)).status).toBe(400)
  expect((await fetch(`${url}/v0.1/servers`, { method: 'POST' })).status).toBe(405)
})
