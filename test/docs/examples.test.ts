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
  expect(stdout).toMatch(/^All checks passed at \d{4}-\d\d-\d\d\n$/)
})

it('the gateway example finds everything right with servers of three ages', async () => {
  const args = ['--disable-warning=ExperimentalWarning', join(root, 'examples/gateway/client.ts')]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 })
  expect(stdout).toBe('All checks of the gateway passed.\n')
})

it('the tickets example takes back what was done, although its server is killed in the midst of that, and goes on', async () => {
  const args = ['--disable-warning=ExperimentalWarning', join(root, 'examples/tickets/client.ts')]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 })
  expect(stdout.trim().split('\n')).toEqual([
    'At first, nothing is allowed',
    '  refused: create_ticket needs tickets:read, tickets:write',
    '  granted: tickets:read, tickets:write',
    '  denied: tickets:admin, only a team lead has that',
    'A call selects a board',
    '  Now on login',
    'Five steps that belong together',
    '  login: T-1 Login fails at night, T-2 Login is slow',
    '  notify: The mail server does not know this team',
    '  The server is killed during the rollback',
    'A new server found the transaction: rolled_back. The team could not be notified',
    '  1 create_ticket  compensated',
    '  2 create_ticket  compensated',
    '  3 link_tickets   compensated',
    '  4 update_ticket  compensated',
    '  5 notify         failed',
    '  Remaining: 0 tickets, 0 links',
    'The client continues where it stopped',
    '  login: T-3 Login fails',
    'Deleting asks for confirmation',
    '  destructive: tickets: delete_ticket. Delete T-3 permanently? No',
    '  destructive: tickets: delete_ticket. Delete T-3 permanently? Yes',
    '  login: nothing',
    'All checks passed',
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
    'A new lab process continues',
    expect.stringMatching(/^ {2}3[45] % were already there; 1,177,888 rows, unchanged$/),
    'All checks passed, and the data never passed through this client',
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
