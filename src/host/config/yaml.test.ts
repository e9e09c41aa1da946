import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readConfig } from './read.ts'
import { readYaml } from './yaml.ts'

test('a YAML file is read as its JSON would be, each value with its line', async () => {
  const { servers, faults } = await readConfig(
    [
      'mcpServers:',
      '  # ours',
      '  notes:',
      '    command: node',
      '    args: [notes.js, 1]',
      '  web:',
      '    url: http://localhost/mcp',
    ].join('\n'),
    '/project/mcp.yaml',
    { env: {}, home: '/home/ann' },
  )
  expect(faults).toEqual([])
  expect(servers.get('notes')).toMatchObject({ target: { command: 'node', args: ['notes.js', '1'] }, line: 3 })
  expect(servers.get('web')).toMatchObject({ target: 'http://localhost/mcp', line: 6 })
})

test('a mistake, a name that stands twice and an alias are told by their line', async () => {
  expect(readYaml('a: 1\na: 2').faults).toMatchObject([{ line: 2 }])
  expect(readYaml('a: &x 1\nb: *x').faults).toMatchObject([{ line: 2, message: expect.stringContaining('*x') }])
  expect(readYaml('a: [').faults.length).toBeGreaterThan(0)
  const { faults, readable } = await readConfig('', '/x.yml')
  expect([readable, faults[0]?.why.message]).toEqual([false, 'The file is not valid YAML: it is empty'])
})

test('whatever JSON there is, YAML reads the same value', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })), value => {
      const { root, faults } = readYaml(JSON.stringify(value))
      expect(faults).toEqual([])
      expect(JSON.stringify(root?.value)).toBe(JSON.stringify(JSON.parse(JSON.stringify(value))))
    }),
  )
})

test('no text makes it throw', () => {
  fc.assert(fc.property(fc.string(), text => void readYaml(text)))
  expect(readYaml('['.repeat(20_000)).faults.length).toBeGreaterThan(0)
})
