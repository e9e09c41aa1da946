/** Every key with all kinds of values: the schema refuses those that the reader refuses, and no others, with the exceptions named here. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ConfigSchema, configFiles, configSchemas } from './config.ts'
import { type ConfigReaders, configReaders } from './config-readers.ts'
import type { Schema } from './type-schema.ts'

type Members = Readonly<Record<string, unknown>>

const schemas = configSchemas()
const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true, strictTypes: false })
let folder: string
let readers: ConfigReaders

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'vivarium-values-'))
  await writeFile(join(folder, 'a'), 'A=b')
  readers = configReaders(folder)
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** One of each kind, and some that are nearly right. */
const values: readonly unknown[] = [
  ...[true, 0, 1, -1, 1.5, 2, 70_000, 1e12, '', 'a', 'a/b', 'stdio', '10m', '22:00', 'ask', 'client'],
  ...[
    'http://x.example',
    'https://x.example',
    'memory:',
    'x'.repeat(300),
    [],
    ['a'],
    ['a/b'],
    ['https://x.example'],
    [''],
    [1],
    [{}],
  ],
  ...[{}, { a: 'b' }, { a: 1 }, { a: [] }, { a: ['b'] }, { a: {} }],
]

const upstream = { url: 'https://a.example.com/mcp' }
const inHost = (section: unknown): Members => ({ mcpServers: { a: upstream }, host: section })
const inRule = (rule: Members): Members => ({ servers: { a: upstream }, rules: [{ name: 'r', do: 'deny', ...rule }] })
const inGateway = (settings: Members): Members => ({ servers: { a: upstream }, ...settings })
const inAuth = (auth: Members): Members => ({ servers: { a: { ...upstream, auth } } })

/** Where the keys of a type stand in a file, with all else that is needed there. */
const types: readonly (readonly [file: string, type: string, whole: (members: Members) => Members])[] = [
  ['host-config', 'WrittenConfig', members => ({ mcpServers: {}, ...members })],
  ['host-config', 'WrittenServer', members => ({ mcpServers: { a: { command: 'x', ...members } } })],
  ['host-config', 'WrittenLive', live => ({ mcpServers: { a: { ...upstream, live } } })],
  ['host-config', 'WrittenScopes', lists => ({ mcpServers: { a: { ...upstream, live: { scopes: { set: lists } } } } })],
  ['host-config', 'WrittenHost', inHost],
  ['host-config', 'WrittenPath', path => inHost({ extract: { 'a/b': { path: 'p', in: '.', ...path } } })],
  ['host-config', 'PolicyRules', policy => inHost({ policy })],
  ['host-config', 'BudgetLimit', limit => inHost({ budgets: [{ name: 'b', counts: 'tokens', most: 1, per: '1d', ...limit }] })],
  ['host-config', 'OtherwiseByKind', otherwise => inHost({ policy: { otherwise } })],
  ['host-config', 'Rule', rule => inHost({ policy: { rules: [{ name: 'r', do: 'deny', ...rule }] } })],
  ['gateway-config', 'WrittenGateway', inGateway],
  [
    'gateway-config',
    'WrittenUpstream',
    entry => ({ servers: { a: { ...('auth' in entry ? upstream : { command: 'x' }), ...entry } } }),
  ],
  ['gateway-config', 'UpstreamAuth', auth => inAuth({ signIn: true, ...auth })],
  ['gateway-config', 'ListenPlace', listen => inGateway({ listen })],
  ['gateway-config', 'WrittenLimits', limits => inGateway({ limits })],
  ['gateway-config', 'ShareOptions', shares => inGateway({ shares })],
  ['gateway-config', 'FixedTokenSettings', auth => inGateway({ auth: { tokens: {}, ...auth } })],
  ['gateway-config', 'IssuerSettings', auth => inGateway({ auth: { issuer: 'https://login.example.com', ...auth } })],
  ['gateway-config', 'GatewayClientSettings', client => inGateway({ clients: { c: client } })],
  ['gateway-config', 'ClientBudget', budget => inGateway({ clients: { c: { budget: { per: '1h', ...budget } } } })],
  ['gateway-config', 'GatewayAudit', audit => inGateway({ audit })],
  ['gateway-config', 'ApprovalSettings', approvals => inGateway({ approvals })],
  ['gateway-config', 'Rule', inRule],
  ['gateway-config', 'When', when => inRule({ when })],
  ['gateway-config', 'RuleRate', above => inRule({ when: { above: { count: 1, per: '1m', ...above } } })],
  ['gateway-config', 'Hours', hours => inRule({ when: { hours: { from: '22:00', to: '07:00', zone: 'UTC', ...hours } } })],
]

/** Keys whose values a reader refuses for what no schema sees: whether a file is there, a date is one, a name is known, two keys agree. */
const beyond: readonly string[] = [
  'Hours.zone',
  'Rule.by',
  'Rule.until',
  'UpstreamAuth.clientSecretFile',
  'UpstreamAuth.privateKey',
  'UpstreamAuth.privateKeyFile',
  'WrittenGateway.events',
  'WrittenGateway.include',
  'WrittenGateway.servers',
  'WrittenLive.uses',
  'WrittenServer.envFile',
  'WrittenUpstream.envFile',
]

/** Keys whose values a reader takes as they are, or leaves to somebody else; the schema says what they should be. */
const unchecked: readonly string[] = [
  'BudgetLimit.featureSet',
  'BudgetLimit.most',
  'BudgetLimit.server',
  'BudgetLimit.warnAt',
  'FixedTokenSettings.resource',
  'GatewayAudit.lines',
  'Hours.days',
  'IssuerSettings.algorithms',
  'IssuerSettings.audience',
  'IssuerSettings.issuer',
  'IssuerSettings.jwksUri',
  'IssuerSettings.resource',
  'IssuerSettings.scopes',
  'IssuerSettings.scopesSupported',
  'PolicyRules.otherwise',
  'PolicyRules.rules',
  'PolicyRules.servers',
  'Rule.fix',
  'Rule.idempotent',
  'Rule.message',
  'Rule.until',
  'When.hours',
  'WrittenConfig.$schema',
  'WrittenConfig.inputs',
  'WrittenGateway.$schema',
  'WrittenGateway.listen',
  'WrittenHost.hooks',
  'WrittenHost.roots',
  'WrittenHost.try',
]

test('a schema refuses what the reader refuses, and no more, but for the keys that are named here', async () => {
  const found = await Promise.all(types.map(differences))
  const keysOf = (by: Difference['by']) =>
    [
      ...new Set(
        found
          .flat()
          .filter(each => each.by === by)
          .map(({ key }) => key),
      ),
    ].sort()
  expect(keysOf('reader')).toEqual(beyond)
  expect(keysOf('schema')).toEqual(unchecked)
})

/** A value that only one of both refuses. */
interface Difference {
  readonly key: string
  readonly by: 'reader' | 'schema'
}

async function differences([file, type, whole]: (typeof types)[number]): Promise<readonly Difference[]> {
  const schema = schemas.get(`${file}.json`) as ConfigSchema
  const validate = ajv.getSchema(String(schema['$id'])) ?? ajv.compile(schema)
  const { properties = {} } = (configFiles[file]?.type === type ? schema : schema.$defs[type]) as { properties?: Schema }
  const faultsIn = file === 'host-config' ? readers.hostFaults : readers.gatewayFaults
  const found: Difference[] = []
  for (const key of Object.keys(properties))
    for (const value of values) {
      const config = whole({ [key]: value })
      const [fault] = await faultsIn(config)
      const valid = validate(config) as boolean
      if (valid !== (fault === undefined)) found.push({ key: `${type}.${key}`, by: valid ? 'reader' : 'schema' })
    }
  return found
}
