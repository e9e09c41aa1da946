import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { schemaDialectOf } from './engine.ts'

const here = (file: string) => new URL(file, import.meta.url).href

/** What a module prints in a process of its own. */
function printed(source: string, ...flags: string[]): unknown {
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, '--input-type=module', '-e', source], { timeout: 20_000 })
  if (stderr.length > 0) throw new Error(stderr.toString())
  return JSON.parse(stdout.toString())
}

it('where no code may be generated, values are checked all the same', () => {
  const source = `
    import { compileSchema } from '${here('./compile.ts')}'
    import { compilePeerSchema } from '${here('./peer.ts')}'
    const schema = compileSchema({ type: 'object', properties: { title: { type: 'string' } }, required: ['title'] })
    const results = [await schema.validate({ title: 'x' }), await schema.validate({ title: 1 }), await schema.validate({})]
    const peer = compilePeerSchema({ type: 'string' }).validate(1)
    console.log(JSON.stringify({ results, peer }))`
  expect(printed(source, '--disallow-code-generation-from-strings')).toEqual({
    results: [
      { ok: true, value: { title: 'x' } },
      { ok: false, issues: [{ path: 'title', message: 'must be string' }] },
      { ok: false, issues: [{ path: 'title', message: 'is required' }] },
    ],
    peer: { ok: false, issues: [{ path: '', message: 'must be string' }] },
  })
})

it('the validator is loaded by the first value, not by the first schema', () => {
  const source = `
    import { createRequire } from 'node:module'
    import { compileSchema } from '${here('./compile.ts')}'
    const loaded = () => Object.keys(createRequire('${here('./compile.ts')}').cache).some(file => file.includes('/ajv/'))
    const schema = compileSchema({ type: 'string' })
    const before = loaded()
    await schema.validate('x')
    console.log(JSON.stringify([before, loaded()]))`
  expect(printed(source)).toEqual([false, true])
})

it.each([
  [{}, '2020-12'],
  [{ $schema: 'https://json-schema.org/draft/2020-12/schema' }, '2020-12'],
  [{ $schema: 'https://json-schema.org/draft/2019-09/schema#' }, '2019-09'],
  [{ $schema: 'http://json-schema.org/draft-07/schema#' }, 'draft-07'],
  [{ $schema: 'https://json-schema.org/draft-07/schema' }, 'draft-07'],
])('%j is of the dialect %s', (json, dialect) => {
  expect(schemaDialectOf(json)).toBe(dialect)
})
