/** The examples of doc comments: all of them are valid code, and those of what most programs use are run against what was built. */
import { execFile } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parseAst } from 'rolldown/parseAst'
import { afterAll, describe, expect, it } from 'vitest'
import { publicSurface, type SurfaceItem } from '../../scripts/api/surface.ts'
import { explain } from '../../scripts/docs/comments.ts'
import { exportsByEntry } from '../../scripts/docs/entry-exports.ts'
import { PUBLIC } from '../../scripts/lib/entries.ts'
import { scratch } from './program.ts'

interface Example {
  readonly name: string
  readonly code: string
}

const surface = publicSurface(Object.values(PUBLIC))
/** Examples of values in a config file are no code. */
const examples: readonly Example[] = surface.flatMap(({ name, comment }: SurfaceItem) =>
  explain(comment).examples.flatMap(code => (code.includes('(') ? [{ name, code }] : [])),
)

/** What stands around an example that is run: it is the body of `run`. */
const bare = `
const tickets = new Map([['T-1', 'Login fails']])
const png = new Uint8Array(8)
const server = createServer({ name: 'tickets', version: '1.0.0', store: 'memory:' })
`
const server = `${bare}
const input = z.object({ a: z.number(), b: z.number() })
server.tool('add', { input }, ({ a, b }) => String(a + b))
server.tool('remove', {}, () => 'removed')
server.tool('create', { undo: { tool: 'remove' } }, () => 'created')
server.tool('export', {}, async function* () { yield 'a'; yield 'b' })
const facts = { name: 'ticket', list: () => [{ uri: 'ticket://T-1' }] }
server.resource('ticket://{id}', facts, ({ id }) => tickets.get(id))
server.prompt('triage', { arguments: { id: { complete: () => ['T-1'] } } }, ({ id }) => \`Triage \${id}\`)
`
const client = `
const { url } = await server.listen()
const mcp = await connectInMemory(server, {
  onElicit: ({ schema }) => ({ action: 'accept', content: schema.properties.size ? { size: 3 } : { [Object.keys(schema.properties)[0]]: true } }),
  onSample: () => ({ role: 'assistant', content: { type: 'text', text: 'Short' }, model: 'm' }),
  roots: [{ uri: 'file:///project' }],
})
`
const host = `
const host = await createHost({ servers: { shop: url }, model: scripted('Fine.', { again: true }) })
`

const surroundings: Readonly<Record<string, (code: string) => string>> = {
  server: code => `${server}${client}{\n${code}\n}`,
  bare: code => `${bare}${code}`,
  // Within the handler of a tool. What it throws becomes a result; only this problem is meant to.
  ctx: code => `${server}server.tool('try', {}, async (_args, ctx) => {\n${code}\nreturn 'done'\n})${client}
const done = await mcp.callTool('try')
if (done.isError && done.problem?.code !== 'INVALID_INPUT') throw new Error(done.text)`,
  host: code => `${server}${client}${host}{\n${code}\n}`,
}

/** What most programs use, and where its example stands. */
const RUN: Readonly<Record<string, keyof typeof surroundings>> = {
  ...{
    createServer: 'server',
    createLog: 'server',
    openStore: 'server',
    problem: 'ctx',
    reply: 'ctx',
    text: 'ctx',
    link: 'ctx',
    image: 'ctx',
  },
  ...{ 'Server.tool': 'bare', 'Server.resource': 'bare', 'Server.prompt': 'bare', 'Server.resourceUpdated': 'server' },
  ...{
    'Server.audit': 'server',
    'Server.use': 'server',
    'Server.listen': 'server',
    'Server.fetch': 'server',
    'Server.fetchWith': 'server',
  },
  ...{
    'EventsApi.event': 'server',
    'ElicitationContext.elicit': 'ctx',
    'ElicitationContext.confirm': 'ctx',
    'SamplingContext.sample': 'ctx',
  },
  ...{ 'RootsContext.roots': 'ctx', 'LoggingContext.log': 'ctx', 'ProgressContext.progress': 'ctx', 'StateContext.state': 'ctx' },
  ...{
    'CallContext.problem': 'ctx',
    'CallContext.once': 'ctx',
    connect: 'server',
    ConnectOptions: 'server',
    connectInMemory: 'server',
  },
  ...{ 'ToolCallsApi.callTool': 'server', 'ToolsClientApi.tools': 'server', 'ClientResources.readResource': 'server' },
  ...{ 'ResourcesClientApi.resources': 'server', 'PromptsClientApi.prompts': 'server', 'PromptsClientApi.getPrompt': 'server' },
  ...{
    'CompletionClientApi.complete': 'server',
    'Client.streamTool': 'server',
    'Client.transaction': 'server',
    'Client.use': 'server',
  },
  ...{ createHost: 'server', HostOptions: 'server', 'Host.conversation': 'host', 'HostConversation.send': 'host', Turn: 'host' },
  ...{ createGateway: 'server', judge: 'server', fakeClock: 'server', scripted: 'server', memoryPair: 'server' },
}

/** Imports of every value that the code names; of several entries the first has it. */
function withImports(code: string): string {
  const entries = new Map<string, string>()
  for (const [entry, all] of exportsByEntry())
    for (const { name, kind } of all) if (kind !== 'type' && !entries.has(name)) entries.set(name, entry)
  const used = [...entries].filter(([name]) => new RegExp(`(?<![\\w.'])${name}\\(`).test(code))
  const imports = used.map(([name, entry]) => `import { ${name} } from 'vivarium/${entry}'`)
  return [...imports, "import { z } from 'zod'", `export async function run() {\n${code}\n}`].join('\n')
}

describe('the examples of doc comments', () => {
  afterAll(() => rm(scratch, { recursive: true, force: true }))

  it('are valid code', () => {
    const broken = examples.filter(({ code }) => {
      try {
        parseAst(`async function example() {\n${code}\n}`, { lang: 'ts' })
        return false
      } catch {
        return true
      }
    })
    expect(broken).toEqual([])
  })

  it('of what most programs use run to their end', async () => {
    const chosen = Object.entries(RUN).map(([name, around]) => ({
      name,
      around,
      code: examples.find(each => each.name === name)?.code,
    }))
    expect(chosen.filter(({ code }) => code === undefined)).toEqual([])
    await mkdir(scratch, { recursive: true })
    const files = chosen.map(({ name }, at) => ({ name, file: `example-${at}.ts` }))
    for (const [at, { around, code = '' }] of chosen.entries())
      await writeFile(join(scratch, files[at]?.file ?? ''), withImports(surroundings[around]?.(code) ?? ''))
    const all = files.map(
      ({ name, file }) =>
        `await import('./${file}').then(each => each.run()).catch(error => failed.push(['${name}', String(error)]))`,
    )
    const program = `const failed = []\n${all.join('\n')}\nconsole.log('\\n' + JSON.stringify(failed))\nprocess.exit(0)\n`
    const main = join(scratch, 'examples.mjs')
    await writeFile(main, program)
    const { stdout } = await promisify(execFile)(process.execPath, ['--disable-warning=ExperimentalWarning', main], {
      timeout: 120_000,
    })
    expect(JSON.parse(stdout.trim().split('\n').at(-1) ?? '')).toEqual([])
  })
})
