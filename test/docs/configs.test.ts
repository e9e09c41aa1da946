/** Configs in the documentation are what the JSON Schemas of config files accept, and code of other programs is code. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import { parseAst } from 'rolldown/parseAst'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { type ConfigSchema, configSchemas } from '../../scripts/schemas/config.ts'
import { type Block, blocksIn } from './blocks.ts'

const schemas = configSchemas()
const ajv = new Ajv2020({ strict: false, allErrors: true })

/** Pages show parts of a file too, so at its top no key is required. */
function partOf({ required: _, anyOf: __, ...schema }: ConfigSchema): object {
  return schema
}

const validators = {
  host: ajv.compile(partOf(schemas.get('host-config.json') as ConfigSchema)),
  gateway: ajv.compile(partOf(schemas.get('gateway-config.json') as ConfigSchema)),
}

/** The sort of file that a document is; undefined: output of a command, or a message. */
function sortOf(value: object): keyof typeof validators | undefined {
  if ('mcpServers' in value || 'host' in value) return 'host'
  return ['error', 'jsonrpc', 'compilerOptions'].some(key => key in value) ? undefined : 'gateway'
}

/** What is wrong with the document of a block. */
function faultsOf({ language, text }: Pick<Block, 'language' | 'text'>): readonly string[] {
  const value: object = language === 'yaml' ? parse(text) : JSON.parse(text)
  const sort = sortOf(value)
  if (sort === undefined || validators[sort](value)) return []
  return (validators[sort].errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  )
}

/** The task to repair a config begins with a broken one. */
const documents = blocksIn('json', 'yaml').filter(({ page }) => page !== 'docs/tasks.md')

describe('configs in the documentation', () => {
  it('are found', () => expect(documents.length).toBeGreaterThan(15))

  it.each(documents.map(block => [block.at, block] as const))('%s is accepted by the schema of its file', (_, block) => {
    expect(faultsOf(block)).toEqual([])
  })

  it('are refused with an unknown key, a wrong value or a broken text', () => {
    expect(faultsOf({ language: 'yaml', text: 'rules: [{ name: a, do: maybe }]' })).not.toEqual([])
    expect(faultsOf({ language: 'yaml', text: 'serverz: {}' })).not.toEqual([])
    expect(faultsOf({ language: 'json', text: '{ "host": { "budgets": [{ "name": "a", "most": "many" }] } }' })).not.toEqual([])
    expect(() => faultsOf({ language: 'json', text: '{ "host": }' })).toThrow(SyntaxError)
  })
})

describe('code in the documentation that is not run', () => {
  // A line of options is no program: it is read as the members of an object.
  const code = blocksIn('js', 'typescript')

  it.each(code.map(({ at, text }) => [at, text] as const))('%s is without a mistake in its syntax', (_, text) => {
    const program = /^\w+: /.test(text) ? `({ ${text} })` : text
    expect(() => parseAst(program, { lang: 'ts' })).not.toThrow()
  })
})
