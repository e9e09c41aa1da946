import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { beforeAll, describe, expect, it } from 'vitest'
import { listFiles, root } from '../lib/files.ts'
import { sourceFile } from './declarations.ts'
import { type Generated, generateSchemas } from './generate.ts'
import { places } from './places.ts'

let generated: Generated

beforeAll(async () => {
  generated = await generateSchemas()
})

/** Folders whose messages are nobody else's business: contracts inside the code, or the words of another implementation. */
const inside = new Set(['live/answers', 'live/dialects', 'live/hosts', 'reliability/davioe', 'reliability/facade'])

describe('the schemas of extensions and of MCP Live', () => {
  it('cover every feature that has messages', () => {
    const folders = listFiles(['src/features/reliability', 'src/features/live'], /^messages\.ts$/).map(path =>
      path.replace(/^src\/features\/|\/messages\.ts$/g, ''),
    )
    expect(folders.filter(folder => !inside.has(folder))).toEqual(Object.keys(places).sort())
  })

  it('tell every type that is written for the wire', () => {
    const missing = Object.keys(places).flatMap(folder => {
      const name = folder.replace(/^reliability\//, '').replace('/', '-')
      const { types } = sourceFile(join(root, 'src/features', folder, 'messages.ts'))
      const told = generated.documents.get(`${name}.json`)?.$defs ?? {}
      return [...types.keys()].filter(type => /^Wire/.test(type) && !(type in told)).map(type => `${name}: ${type}`)
    })
    expect(missing).toEqual([])
  })

  it('are JSON Schemas whose references all lead somewhere', () => {
    const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true, formats: { 'date-time': true } })
    for (const [file, document] of generated.documents) ajv.addSchema({ ...document, $id: file })
    for (const [file, { $defs }] of generated.documents)
      for (const name of Object.keys($defs))
        expect(typeof ajv.compile({ $ref: `${file}#/$defs/${name.replaceAll('/', '~1')}` })).toBe('function')
    const refs = Object.values(generated.index).flatMap(({ methods, meta }) => [
      ...methods.flatMap(({ params, result }) => [params, ...(result === undefined ? [] : [result])]),
      ...Object.values(meta),
    ])
    for (const ref of refs) expect(typeof ajv.compile({ $ref: ref })).toBe('function')
    expect(refs.length).toBeGreaterThan(60)
  })

  it('say of each member what the code says', () => {
    const $defs: Readonly<Record<string, unknown>> = generated.documents.get('transactions.json')?.$defs ?? {}
    expect($defs['WireRolledBack']).toMatchObject({
      type: 'object',
      required: expect.arrayContaining(['transaction_id', 'steps', 'steps_compensated']),
      properties: {
        status: { $ref: '#/$defs/WireTransactionStatus' },
        timeout_seconds: { type: 'number', description: 'Seconds without activity after which it is rolled back.' },
        steps_compensated: { type: 'array', items: { properties: { status: { enum: ['compensated', 'compensation_failed'] } } } },
      },
    })
    expect($defs['transaction/begin.params']).toMatchObject({
      required: ['transaction_id'],
      properties: { timeout_seconds: { type: 'integer' } },
    })
    expect(generated.index['live-push-events']?.methods.map(({ method, kind }) => `${kind} ${method}`).sort()).toEqual([
      'notification push/event',
      'request push/event',
    ])
    expect(generated.index['cost']).toMatchObject({
      extension: 'dev.vivarium/operational',
      meta: { call: 'cost.json#/$defs/_meta.call' },
    })
  })
})
