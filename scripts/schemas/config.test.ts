/** The schemas of config files against the readers of these files: what one refuses the other refuses too, and both know the same keys. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { parse } from 'yaml'
import { scaffold } from '../../src/cli/commands/new.ts'
import { readGatewayConfig } from '../../src/gateway/config/read.ts'
import { entryMembers } from '../../src/host/config/entry.ts'
import { parseConfig, readParsed } from '../../src/host/config/read.ts'
import { findKeyProblems, pagePaths, typesOf, withTables } from '../check-config-docs.ts'
import { listFiles, root } from '../lib/files.ts'
import { annotate, defaultSentence } from './comments.ts'
import { type ConfigSchema, configFiles, configSchemas } from './config.ts'
import { type ConfigReaders, configReaders, env } from './config-readers.ts'
import { sourceFile } from './declarations.ts'
import { constant } from './literals.ts'
import { Definitions, type Schema } from './type-schema.ts'
import { writeSchemas } from './write.ts'

type Config = Readonly<Record<string, unknown>>

const schemas = configSchemas()
const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true, strictTypes: false })
const validatorOf = (name: string): ValidateFunction => ajv.compile(schemas.get(`${name}.json`) as ConfigSchema)
const [host, gateway, trusted] = [validatorOf('host-config'), validatorOf('gateway-config'), validatorOf('trusted-files')]

/** What a schema says against a file. */
function problems(validate: ValidateFunction, config: unknown): readonly string[] {
  return validate(config) ? [] : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

/** The keys of a type, with what the schema of a file says of each. */
function keysOf(name: string, type: string): Readonly<Record<string, Schema>> {
  const schema = schemas.get(`${name}.json`)
  const described = configFiles[name]?.type === type ? schema : schema?.$defs[type]
  return (described?.['properties'] ?? {}) as Record<string, Schema>
}

const text = (path: string): Promise<string> => readFile(join(root, path), 'utf8')

let folder: string
let hostFaults: ConfigReaders['hostFaults']
let hostFixes: ConfigReaders['hostFixes']
let gatewayFaults: ConfigReaders['gatewayFaults']

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'vivarium-schemas-'))
  await writeFile(join(folder, 'key.pem'), 'a key')
  ;({ hostFaults, hostFixes, gatewayFaults } = configReaders(folder))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const upstream = { url: 'https://a.example.com/mcp' }
const withHost = (section: unknown): Config => ({ mcpServers: {}, host: section })
const withRule = (rule: object): Config => ({ servers: { a: upstream }, rules: [{ name: 'r', do: 'deny', ...rule }] })
const withGateway = (settings: object): Config => ({ servers: { a: upstream }, ...settings })

describe('the schemas of config files', () => {
  it('describe every key in sentences', () => {
    const mute = [...schemas].flatMap(([name, schema]) =>
      [['', schema] as const, ...Object.entries(schema.$defs)].flatMap(([type, { properties = {} }]) =>
        Object.entries(properties as Record<string, Schema>)
          .filter(([, { description = '' }]) => !/^[A-Z`].*[.]$/s.test(String(description)))
          .map(([key]) => `${name} ${type}.${key}`),
      ),
    )
    expect(mute).toEqual([])
  })

  it('tell defaults beside the sentence and in it', () => {
    const { timeout } = keysOf('host-config', 'WrittenServer')
    expect(timeout).toMatchObject({ default: 60_000, description: expect.stringMatching(/in milliseconds.*Default: `60000`\.$/) })
    expect(schemas.get('gateway-config.json')?.properties['askTimeout']).toMatchObject({ default: '10m' })
    expect('A span of time. Default: `10m`.'.replace(defaultSentence, '')).toBe('A span of time.')
  })

  it('fit what the command keeps of the user', () => {
    expect(trusted({ agreed: [{ file: '/a/.mcp.json', digest: 'x', lines: ['y'] }] })).toBe(true)
    expect(trusted({ agreed: [{ file: '/a/.mcp.json' }] })).toBe(false)
  })

  it('lie beside the others, and the index names them', async () => {
    await writeSchemas(join(folder, 'schemas'))
    const read = async (name: string) => JSON.parse(await readFile(join(folder, 'schemas', name), 'utf8')) as Schema
    const { files } = (await read('index.json')) as { files: Record<string, { file: string }> }
    expect(Object.keys(files)).toEqual(Object.keys(configFiles))
    for (const { file } of Object.values(files)) expect(await read(file)).toEqual(JSON.parse(JSON.stringify(schemas.get(file))))
    // By its own name, as a program compiles it that has the package.
    expect(typeof new Ajv2020({ strict: false }).compile(await read('cost.json'))).toBe('function')
  })

  it('are about constants that are known without running anything', () => {
    const file = sourceFile(join(root, 'src/engine/limits.ts'))
    expect(constant('serverLimits', file)).toMatchObject({ frameBytes: 4 * 1024 * 1024, calls: 2_000 })
    expect(() => constant('nothing', file)).toThrow('there is no constant nothing')
    expect(new Definitions(() => undefined, annotate).all.size).toBe(0)
  })
})

describe('the examples of the repository', () => {
  test('examples/host/mcp.json', async () => {
    const { root: parsed } = await parseConfig(await text('examples/host/mcp.json'), 'mcp.json')
    expect(problems(host, parsed?.value)).toEqual([])
  })

  test('examples/gateway/gateway.yaml', async () => {
    expect(problems(gateway, parse(await text('examples/gateway/gateway.yaml')))).toEqual([])
  })

  test('the files of a new server', () => {
    const files = scaffold({ name: 'notes', vivarium: '^1.0.0', author: 'Kim' })
    expect(problems(host, JSON.parse(files.get('.mcp.json') ?? ''))).toEqual([])
  })

  test('each names a schema that the package has', async () => {
    const { exports } = JSON.parse(await text('package.json')) as { exports: Record<string, string> }
    const named = await Promise.all(
      ['examples/host/mcp.json', 'examples/gateway/gateway.yaml', 'src/cli/commands/new.ts', ...pagePaths].map(text),
    )
    const paths = named.flatMap(each => [...each.matchAll(/[./\w]+\/(dist\/schemas\/[\w-]+)\.json/g)].map(([, path]) => path))
    expect(exports['./schemas/*']).toBe('./dist/schemas/*')
    expect(new Set(paths)).toEqual(new Set(['dist/schemas/host-config', 'dist/schemas/gateway-config']))
    for (const path of paths) expect(Object.keys(configFiles)).toContain(path?.split('/').at(-1))
  })

  test.each(listFiles(['docs'], /\.md$/))('%s', async page => {
    const blocks = [...(await text(page)).matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map(([, block = '']) => parse(block) as Config)
    const known = Object.keys(schemas.get('gateway-config.json')?.properties ?? {})
    for (const block of blocks)
      if (block !== null && Object.keys(block).some(key => known.includes(key)))
        expect([page, problems(gateway, { include: 'more.json', ...block })]).toEqual([page, []])
  })
})

describe('the pages of reference', () => {
  test('have the tables of the schemas, and every key in one', async () => {
    const pages = await Promise.all(pagePaths.map(async path => ({ path, text: await text(path) })))
    const types = typesOf(schemas)
    expect(findKeyProblems(pages, types)).toEqual([])
    expect(withTables(pages, types)).toEqual(pages)
    expect(findKeyProblems([{ path: 'x.md', text: '<!-- keys: Hours: from, till -->\n' }], types)).toEqual(
      expect.arrayContaining(['x.md: Hours has no key till', 'Hours.to stands in no table of x.md']),
    )
  })

  test('show a file that a host reads', async () => {
    const [, block = ''] = /^```json\n([\s\S]*?)^```/m.exec(await text('docs/reference/host-config.md')) ?? []
    const config: unknown = JSON.parse(block)
    expect(problems(host, config)).toEqual([])
    const all = { ...env, TICKETS_TOKEN: 'x' }
    const file = join(folder, 'mcp.json')
    const parsed = await parseConfig(block, file)
    const { servers, faults } = await readParsed(parsed, file, { env: all, home: folder })
    expect([faults, [...servers.keys()]]).toEqual([[], ['memory', 'tickets']])
    expect(await hostFaults(withHost((config as Config)['host']))).toEqual([])
  })

  test('show a file that a gateway reads', async () => {
    const [, block = ''] = /^```yaml\n([\s\S]*?)^```/m.exec(await text('docs/reference/gateway-config.md')) ?? []
    expect(problems(gateway, parse(block))).toEqual([])
    await writeFile(join(folder, 'team.json'), JSON.stringify({ mcpServers: { wiki: upstream } }))
    const all = { BANK_SECRET: 'x', GATEWAY_SECRET: env.SECRET, CI_TOKEN: env.TOKEN, OPS_TOKEN: `${env.TOKEN}-2` }
    const config = await readGatewayConfig(block, join(folder, 'gateway.yaml'), { env: all, home: folder })
    expect([config.faults, [...config.servers.keys()]]).toEqual([[], ['bank', 'files', 'wiki']])
  })

  test('show rules that both read', async () => {
    const [, block = ''] = /^```yaml\n([\s\S]*?)^```/m.exec(await text('docs/reference/rules.md')) ?? []
    const { rules, otherwise } = parse(block) as Config
    expect(await gatewayFaults(withGateway({ rules, otherwise }))).toEqual([])
    expect(await hostFaults(withHost({ policy: { rules, otherwise } }))).toEqual([])
    expect(problems(host, withHost({ policy: { rules, otherwise } }))).toEqual([])
  })
})

/** The keys of one type, as the reader names them when it is given one that it does not know. */
const knownBy: readonly (readonly [string, string, ReadonlySet<string>, () => Promise<readonly string[]>])[] = [
  ['host-config', 'WrittenLive', new Set(), () => hostFixes({ mcpServers: { a: { ...upstream, live: { zzzzzzzz: 1 } } } })],
  ['host-config', 'WrittenHost', new Set(), () => hostFaults(withHost({ zzz: 1 }))],
  ['host-config', 'PolicyRules', new Set(), () => hostFaults(withHost({ policy: { zzz: 1 } }))],
  ['host-config', 'BudgetLimit', new Set(), () => hostFaults(withHost({ budgets: [{ name: 'b', zzz: 1 }] }))],
  ['gateway-config', 'WrittenGateway', new Set(['$schema']), () => gatewayFaults(withGateway({ zzz: 1 }))],
  ['gateway-config', 'WrittenUpstream', new Set(), () => gatewayFaults({ servers: { a: { ...upstream, zzz: 1 } } })],
  ['gateway-config', 'UpstreamAuth', new Set(), () => gatewayFaults({ servers: { a: { ...upstream, auth: { zzz: 1 } } } })],
  ['gateway-config', 'ListenPlace', new Set(), () => gatewayFaults(withGateway({ listen: { zzz: 1 } }))],
  ['gateway-config', 'WrittenLimits', new Set(), () => gatewayFaults(withGateway({ limits: { zzz: 1 } }))],
  ['gateway-config', 'ShareOptions', new Set(), () => gatewayFaults(withGateway({ shares: { zzz: 1 } }))],
  ['gateway-config', 'FixedTokenSettings', new Set(), () => gatewayFaults(withGateway({ auth: { tokens: {}, zzz: 1 } }))],
  ['gateway-config', 'GatewayClientSettings', new Set(), () => gatewayFaults(withGateway({ clients: { c: { zzz: 1 } } }))],
  ['gateway-config', 'ClientBudget', new Set(), () => gatewayFaults(withGateway({ clients: { c: { budget: { zzz: 1 } } } }))],
  ['gateway-config', 'GatewayAudit', new Set(), () => gatewayFaults(withGateway({ audit: { zzz: 1 } }))],
  ['gateway-config', 'ApprovalSettings', new Set(), () => gatewayFaults(withGateway({ approvals: { zzz: 1 } }))],
  ['gateway-config', 'OtherwiseByKind', new Set(), () => gatewayFaults(withGateway({ otherwise: { zzz: 'ask' } }))],
  ['gateway-config', 'Rule', new Set(), () => gatewayFaults(withRule({ zzz: 1 }))],
  ['gateway-config', 'When', new Set(), () => gatewayFaults(withRule({ when: { zzz: 1 } }))],
]

test('the keys of an entry are those that the reader knows', () => {
  expect(Object.keys(keysOf('host-config', 'WrittenServer'))).toEqual([...entryMembers])
})

test.each(knownBy)('%s: the keys of %s are those that the reader names', async (name, type, beside, refused) => {
  const [, list = ''] = /(?:[Tt]here are|Settings are|Use) ([^.\n]+)/.exec((await refused()).join('\n')) ?? []
  const named = list.split(/, | and | or /).map(word => word.replace(/^but no .*/, '').trim())
  const keys = Object.keys(keysOf(name, type)).filter(key => !beside.has(key))
  expect([...new Set(named)].filter(word => /^\$?\w+$/.test(word)).sort()).toEqual(keys.sort())
})

const rule = (written: object): Config => withHost({ policy: { rules: [{ name: 'r', ...written }] } })
const budget = (written: object): Config =>
  withHost({ budgets: [{ name: 'b', counts: 'tokens', most: 1, per: '1d', ...written }] })
const entry = (written: object): Config => ({ mcpServers: { a: written } })

test.each<[string, unknown]>([
  ['no servers', {}],
  ['servers that are no object', { mcpServers: [] }],
  ['a server without a name', { mcpServers: { '': upstream } }],
  ['a server with a long name', { mcpServers: { ['a'.repeat(129)]: upstream } }],
  ['questions of an editor', { mcpServers: {}, inputs: [{ id: 'key' }] }],
  ['an entry that is no object', { mcpServers: { a: 5 } }],
  ['an entry that leads nowhere', entry({ args: [] })],
  ['an empty command', entry({ command: '' })],
  ['a transport that nobody knows', entry({ ...upstream, type: 'pigeon' })],
  ['an address of another protocol', entry({ url: 'ftp://a.example.com' })],
  ['a time that is none', entry({ ...upstream, timeout: 0 })],
  ['a time that is a text', entry({ ...upstream, startTimeout: '30s' })],
  ['a time beyond a day', entry({ ...upstream, timeout: 90_000_000 })],
  ['a flag that is a text', entry({ ...upstream, disabled: 'yes' })],
  ['arguments that are no list', entry({ command: 'x', args: '-y' })],
  ['variables that are a list', entry({ command: 'x', env: ['A=1'] })],
  ['headers that hold a list', entry({ ...upstream, headers: { a: ['b'] } })],
  ['a misspelled key of live', entry({ ...upstream, live: { enabel: [] } })],
  ['a misspelled key of the host', withHost({ polcy: {} })],
  ['a prompt that is no text', withHost({ system: 5 })],
  ['a duration without a unit', withHost({ remember: 5 })],
  ['roots that are no list', withHost({ roots: '.' })],
  ['an argument that is none', withHost({ extract: { 'a/b': 5 } })],
  ['a path without its folder', withHost({ extract: { 'a/b': { path: 'p' } } })],
  ['a misspelled key of a policy', withHost({ policy: { rule: [] } })],
  ['a rule without a name', withHost({ policy: { rules: [{ do: 'deny' }] } })],
  ['a rule that says nothing', rule({})],
  ['a misspelled effect', rule({ do: 'alow' })],
  ['a misspelled key of a rule', rule({ do: 'deny', whne: {} })],
  ['a misspelled condition', rule({ do: 'deny', when: { tols: 'x' } })],
  ['a misspelled kind', rule({ do: 'deny', when: { kind: 'tols' } })],
  ['a turn that nobody began', rule({ do: 'deny', when: { begunBy: 'nobody' } })],
  ['a list without patterns', rule({ do: 'deny', when: { tool: [] } })],
  ['a rate of none', rule({ do: 'deny', when: { above: { count: 0, per: '1m' } } })],
  ['an hour of the day that is none', rule({ do: 'hold', when: { hours: { from: '25:00', to: '07:00', zone: 'UTC' } } })],
  ['a day that is none', rule({ do: 'hold', when: { hours: { from: '22:00', to: '07:00', zone: 'UTC', days: ['sunday'] } } })],
  ['events that become one at no time', rule({ do: 'coalesce' })],
  ['an approver that nobody knows', rule({ do: 'ask', approver: 'everybody' })],
  ['a risk that nobody knows', rule({ do: 'ask', risk: 'high' })],
  ['a cost below nothing', rule({ cost: { units: -1 } })],
  ['a verdict that is none', withHost({ policy: { otherwise: 'perhaps' } })],
  ['a verdict about a kind that is none', withHost({ policy: { otherwise: { tols: 'ask' } } })],
  ['a question about what is read', withHost({ policy: { otherwise: { resource: 'ask' } } })],
  ['a budget of something else', budget({ counts: 'hours' })],
  ['a budget of nothing', budget({ most: 0 })],
  ['a budget per nothing', budget({ per: 'day' })],
  ['a warning behind the end', budget({ warnAt: 2 })],
  ['a misspelled key of a budget', budget({ servre: 'a' })],
])('a host and its schema refuse %s', async (_, config) => {
  expect(await hostFaults(config)).not.toEqual([])
  expect(host(config)).toBe(false)
})

const credentials = (auth: unknown): Config => ({ servers: { a: { ...upstream, auth } } })
const client = (settings: object): Config => withGateway({ clients: { c: settings } })

test.each<[string, unknown]>([
  ['no servers', { listen: 7420 }],
  ['a misspelled key', withGateway({ rulse: [] })],
  ['a misspelled key of an entry', { servers: { a: { ...upstream, heades: {} } } }],
  ['a command and a url', { servers: { a: { ...upstream, command: 'x' } } }],
  ['a prefix that is none', { servers: { a: { ...upstream, prefix: 'my tools' } } }],
  ['an include that is no path', { include: [5] }],
  ['credentials that are none', credentials('sign-up')],
  ['a misspelled key of credentials', credentials({ clientID: 'x' })],
  ['a secret and a key', credentials({ clientId: 'x', clientSecret: 'y', privateKeyFile: 'key.pem' })],
  ['an algorithm that nobody knows', credentials({ clientId: 'x', privateKeyFile: 'key.pem', algorithm: 'HS256' })],
  ['a flag that is a text', credentials({ signIn: 'yes' })],
  ['a store of another kind', withGateway({ store: 'redis://x' })],
  ['a short secret', withGateway({ secret: 'too short' })],
  ['a time that is none', withGateway({ askTimeout: 'soon' })],
  ['a port that is none', withGateway({ listen: { port: 70_000 } })],
  ['a path that is none', withGateway({ listen: { path: 'mcp' } })],
  ['names of another kind', withGateway({ names: 'long' })],
  ['a limit that nobody knows', withGateway({ limits: { bytes: 5 } })],
  ['a limit of none', withGateway({ limits: { calls: 0 } })],
  ['a share of one', withGateway({ shares: { calls: 1 } })],
  ['a short token', withGateway({ auth: { tokens: { c: 'short' } } })],
  ['an address that is not encrypted', withGateway({ auth: { tokens: {}, resource: 'http://mcp.example.com' } })],
  ['an issuer that is none', withGateway({ auth: { issuer: 'login' } })],
  ['tokens and an issuer', withGateway({ auth: { issuer: 'https://login.example.com', tokens: {} } })],
  ['a misspelled key of a client', client({ tool: 'a/*' })],
  ['a tool of no server', client({ tools: 'close' })],
  ['a budget of two kinds', client({ budget: { units: 1, calls: 1, per: '1h' } })],
  ['a budget without a period', client({ budget: { units: 1 } })],
  ['rules that are no list', withGateway({ rules: {} })],
  ['a rule without a name', withGateway({ rules: [{ do: 'deny' }] })],
  ['a rule that says nothing', withGateway({ rules: [{ name: 'r' }] })],
  ['a misspelled effect', withRule({ do: 'alow' })],
  ['conditions in both forms', withRule({ when: {}, tool: 'x' })],
  ['a verdict that is none', withGateway({ otherwise: 'perhaps' })],
  ['lists of another kind', withGateway({ listed: 'some' })],
  ['pins of another kind', withGateway({ pins: 'hard' })],
  ['a misspelled key of the audit', withGateway({ audit: { keeps: '1d' } })],
  ['a log for a time that is none', withGateway({ audit: { keep: 'long' } })],
  ['a wait that is none', withGateway({ approvals: { wait: 'long' } })],
  ['sources that are neither told nor not', withGateway({ provenance: 'yes' })],
  ['events of resources that are no list', withGateway({ events: { a: 'note://1' } })],
])('a gateway and its schema refuse %s', async (_, config) => {
  expect(await gatewayFaults(config)).not.toEqual([])
  expect(gateway(config)).toBe(false)
})

test('variables may stand wherever a text is checked only when they are replaced', async () => {
  const config = {
    ...withGateway({ secret: `\${SECRET}`, store: `\${STORE:-memory:}`, pins: `\${PINS:-warn}`, askTimeout: `\${ASK:-5m}` }),
    auth: { tokens: { local: `\${TOKEN}` } },
  }
  expect(await gatewayFaults(config)).toEqual([])
  expect(problems(gateway, config)).toEqual([])
  expect(gateway(withGateway({ pins: 'warm' }))).toBe(false)
  expect(host(rule({ do: `\${EFFECT}` }))).toBe(false)
  expect(problems(host, entry({ url: `\${URL}`, type: 'streamableHttp' }))).toEqual([])
})
