/** The tasks for readers: unsolved as they are written, and solved by what stands here and nowhere in the documentation. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPostgres, type TestPostgres } from '../real-postgres.ts'
import { Walkthrough } from './walkthrough.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/tasks.md'), 'utf8')
const sections = page.split(/^(?=## \d)/m).slice(1)

interface Task {
  readonly title: string
  /** What a reader changes. */
  readonly solution: string
  /** How a reader sees that it is solved. */
  readonly check: string
}

const tasks: readonly Task[] = [
  {
    title: '1. Add a scope to a tool',
    solution: `
\`\`\`diff [server.ts]
-server.tool('delete_notes', { description: 'Deletes all notes' }, () => 'Deleted')
+server.tool('delete_notes', { description: 'Deletes all notes', scopes: ['notes:write'] }, () => 'Deleted')
\`\`\`
`,
    check: `
\`\`\`console [server]
$ npx vivarium serve server.ts
Serving server.ts at http://127.0.0.1:3000/mcp
\`\`\`

\`\`\`console
$ export READER=reader WRITER=writer
$ npx vivarium call http://127.0.0.1:3000/mcp count_notes --bearer-env READER
3 notes
$ npx vivarium call http://127.0.0.1:3000/mcp delete_notes --bearer-env WRITER
Deleted
$ npx vivarium call http://127.0.0.1:3000/mcp delete_notes --bearer-env READER || echo Refused
Refused
\`\`\`
`,
  },
  {
    title: '2. Make a tool undoable',
    solution: `
\`\`\`diff [tracker.ts]
-server.tool('open_ticket', { description: 'Opens a ticket', output: ticket }, () => {
+const undo = { tool: 'close_ticket', arguments: ({ result }: { result?: { id: string } }) => result && { id: result.id } }
+server.tool('open_ticket', { description: 'Opens a ticket', output: ticket, undo }, () => {
\`\`\`
`,
    check: `
\`\`\`console
$ node check.ts
{"id":"T-1"} {"id":"T-2"} 0 tickets
\`\`\`
`,
  },
  {
    title: '3. Let an event wake an agent',
    solution: `
\`\`\`diff [door.ts]
-server.tool('ring', { description: 'Rings the bell' }, () => 'Rung')
+const bell = server.featureSet('bell', { description: 'Says that somebody rang', uses: ['pushEvents'] })
+server.tool('ring', { description: 'Rings the bell' }, async () => {
+  await bell.push({ content: 'Somebody rang' })
+  return 'Rung'
+})
\`\`\`

\`\`\`diff [agent.ts]
-  servers: { door: { url: 'http://127.0.0.1:3000/mcp' } },
+  servers: { door: { url: 'http://127.0.0.1:3000/mcp', live: { enable: ['bell'] } } },
@@
+await host.open()
 console.log('Ready', host.servers.length)
\`\`\`
`,
    check: `
\`\`\`console [server]
$ npx vivarium serve door.ts
Serving door.ts at http://127.0.0.1:3000/mcp
\`\`\`

\`\`\`console [agent]
$ node agent.ts
Ready 1
\`\`\`

\`\`\`console
$ npx vivarium call http://127.0.0.1:3000/mcp ring
\`\`\`

\`\`\`console [agent]
event: I will open the door.
\`\`\`
`,
  },
  {
    title: '4. Put a server behind a gateway with an approval',
    solution: `
\`\`\`yaml [gateway.yaml]
servers:
  bank: { command: npx, args: [vivarium, serve, bank.ts, --stdio] }
listen: { port: 7420 }
store: sqlite:gateway.db
rules:
  - { name: payments, when: { tool: pay }, do: ask, wait: 45s }
\`\`\`

\`\`\`console [gateway]
$ npx vivarium gateway gateway.yaml
Serving 1 server at http://127.0.0.1:7420/mcp
2026-11-19T06:18:30.488Z vivarium info upstream-up server=bank revision=2026-07-28
\`\`\`
`,
    check: `
\`\`\`console
$ npx vivarium call http://127.0.0.1:7420/mcp balance
100 euros
\`\`\`

\`\`\`console [payer]
$ npx vivarium call http://127.0.0.1:7420/mcp pay amount=5
\`\`\`

\`\`\`console [gateway]
  → vivarium gateway approvals gateway.yaml --approve '~anonymous.827b3c51-408f-4358-953b-5a0099e9346a'
\`\`\`

\`\`\`console
$ npx vivarium gateway approvals gateway.yaml --approve '~anonymous.827b3c51-408f-4358-953b-5a0099e9346a' --as kim
\`\`\`

\`\`\`console [payer]
Paid 5
\`\`\`

\`\`\`console
$ npx vivarium gateway audit gateway.yaml --outcome approved | grep -o by=kim
by=kim
\`\`\`
`,
  },
  {
    title: '5. Run two replicas',
    solution: `
\`\`\`diff [basket.ts]
-const server = createServer({ name: 'basket', version: '1.0.0' })
+const secret = 'the same for both, and kept elsewhere'
+const server = createServer({ name: 'basket', version: '1.0.0', store: process.env.DATABASE_URL, secret })
\`\`\`
`,
    check: `
\`\`\`console [first]
$ node basket.ts 3001
http://127.0.0.1:3001/mcp
\`\`\`

\`\`\`console [second]
$ node basket.ts 3002
http://127.0.0.1:3002/mcp
\`\`\`

\`\`\`console
$ node check.ts
tea, bread, milk
\`\`\`
`,
  },
  {
    title: '6. Find out why an agent acted',
    solution: `
\`\`\`ts [answer.ts]
import { createHost } from 'vivarium/host'

await using host = await createHost({ store: 'sqlite:night.db' })
const [call] = (await host.audit({ kind: 'tool' })).notes
const { notes } = await host.explain(call?.inferenceId ?? '')
process.stdout.write(notes.find(({ kind }) => kind === 'push')?.eventId ?? '')
\`\`\`
`,
    check: `
\`\`\`console
$ node night.ts > night.txt && grep -c digest night.txt
1
$ grep -q $(node answer.ts | sha256sum | cut -d' ' -f1) night.txt && echo Solved
Solved
\`\`\`
`,
  },
  {
    title: '7. Do a repeated call once',
    solution: `
\`\`\`diff [till.ts]
-const server = createServer({ name: 'till', version: '1.0.0' })
+const server = createServer({ name: 'till', version: '1.0.0', store: 'sqlite:till.db' })
\`\`\`
`,
    check: `
\`\`\`console
$ node check.ts
Ledger: paid
\`\`\`
`,
  },
  {
    title: '8. Repair a config',
    solution: `
\`\`\`json [servers.json]
{
  "mcpServers": {
    "shop": { "command": "npx", "args": ["vivarium", "serve", "shop.ts", "--stdio"], "env": { "SHOP_KEY": "\${SHOP_KEY}" } },
    "again": { "command": "npx", "args": ["vivarium", "serve", "shop.ts", "--stdio"], "env": { "SHOP_KEY": "\${SHOP_KEY}" } }
  }
}
\`\`\`
`,
    check: `
\`\`\`console
$ export SHOP_KEY=1234
$ npx vivarium call shop open --config servers.json --trust
Open
$ npx vivarium call again open --config servers.json --trust
Open
\`\`\`
`,
  },
]

describe('the tasks of docs/tasks.md', () => {
  let postgres: TestPostgres
  beforeAll(async () => {
    postgres = await startPostgres()
  }, 120_000)
  afterAll(() => postgres.stop())

  const walkthrough = (waitMs: number) =>
    new Walkthrough({ packages: ['zod', 'pg'], env: { DATABASE_URL: postgres.url }, waitMs })

  it('are eight, in order', () => {
    expect(sections.map(section => /^## (.*)/.exec(section)?.[1])).toEqual(tasks.map(({ title }) => title))
  })

  it.concurrent.each(tasks)('$title: as it is written it is not solved', { timeout: 60_000 }, async ({ title, check }) => {
    await using start = walkthrough(4_000)
    await expect(start.play(`${sectionOf(title)}${check}`)).rejects.toThrow()
  })

  it.concurrent.each(tasks)('$title: can be solved', { timeout: 120_000 }, async ({ title, solution, check }) => {
    await using solved = walkthrough(60_000)
    await solved.play(`${sectionOf(title)}${solution}${check}`)
    expect(await solved.typeErrors()).toBe('')
  })
})

function sectionOf(title: string): string {
  return sections.find(section => section.startsWith(`## ${title}\n`)) ?? expect.unreachable(`There is no task "${title}"`)
}
