import { mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readJsonc } from '../host/config/read.ts'
import { compile } from '../policy/compile.ts'
import { extracted } from '../policy/scopes/elevate.ts'
import { readSettings } from './host-settings.ts'

const read = (host: unknown, env = {}) =>
  readSettings(readJsonc(JSON.stringify({ mcpServers: {}, host })), '/config/mcp.json', env)

test('a file without a section about the host says nothing of it', () => {
  expect(readSettings(readJsonc('{ "mcpServers": {} }'), 'mcp.json', {})).toEqual({
    host: {},
    roots: [],
    examples: [],
    written: {},
  })
})

test('roots are paths from the folder of the file, with its variables', () => {
  const { host, roots } = read({ roots: ['work', `\${HERE}/x`] }, { HERE: '/here' })
  expect(roots).toEqual(['/config/work', '/here/x'])
  expect(host.roots).toEqual([{ uri: 'file:///config/work' }, { uri: 'file:///here/x' }])
  expect(() => read({ roots: [`\${NONE}`] })).toThrow('host.roots: The variable NONE is not set')
})

test('an argument that is a path acts where it leads, or on its folder where it is left out', () => {
  const here = mkdtempSync(join(realpathSync(tmpdir()), 'vivarium-settings-'))
  onTestFinished(() => rmSync(here, { recursive: true }))
  symlinkSync('/', join(here, 'link'))
  const rule = { path: 'path', in: here, with: { mode: 'write' } }
  const { extract = {} } = read({ extract: { 'files/*': rule, 'web/get': 'url' } }).host
  const scope = (args: unknown) => extracted(extract, 'files', 'edit', args)?.[0]
  const made = join(here, 'new.txt')
  expect(scope({ path: 'new.txt' })).toEqual({ label: made, payload: { path: made, mode: 'write' } })
  expect(scope({})?.label).toBe(here)
  expect(scope({ path: 'link/new.txt' })?.label).toBe('/new.txt')
  expect(scope({ path: 'nowhere/new.txt' })).toBeUndefined()
  expect(scope({ path: ['a'] })).toBeUndefined()
  expect(extracted(extract, 'web', 'get', { url: 'u' })).toEqual([{ label: 'u', payload: { url: 'u' } }])
})

test.each([
  [{ polcy: {} }, 'host.polcy is not a known setting'],
  [{ policy: [] }, 'host.policy must be an object'],
  [{ roots: '/' }, 'host.roots must be a list'],
  [{ system: {} }, 'host.system must be a string'],
  [{ extract: { 'a/b': { path: 1 } } }, 'host.extract.a/b must be the name of an argument'],
  ['x', '"host" is not an object'],
])('a mistake names its member: %j', (host, message) => {
  expect(() => read(host)).toThrow(message)
})

test('the config of the reference servers is one that the policy takes', () => {
  const file = join(import.meta.dirname, '../../examples/host/mcp.json')
  const { host, examples } = readSettings(readJsonc(readFileSync(file, 'utf8')), file, {
    VIVARIUM_DATA: '/data',
    VIVARIUM_FOLDER: '/here',
  })
  expect(compile(host.policy ?? {}).shadowed).toEqual([])
  expect(host.roots).toEqual([{ uri: 'file:///data/files' }, { uri: 'file:///here' }])
  expect(examples.length).toBeGreaterThan(0)
})
