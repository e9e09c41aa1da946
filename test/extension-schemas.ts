/** A further judge of what the extensions say on the wire: their own JSON Schemas, where there are any beside the official ones. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { compilePeerSchema } from '../src/core/schema/peer.ts'

/** Holds a value against a definition of one of the schemas; does nothing where they are not there. */
export function expectFits(value: unknown, file: string, definition?: string): void {
  const folder = process.env['VIVARIUM_SCHEMAS']
  const path = folder === undefined ? undefined : join(folder, '../extensions', file)
  if (path === undefined || !existsSync(path)) return
  const { $id, ...schema } = JSON.parse(readFileSync(path, 'utf8'))
  const target = definition === undefined ? schema : { $defs: schema.$defs, $ref: `#/$defs/${definition}` }
  expect(compilePeerSchema(target).validate(JSON.parse(JSON.stringify(value)))).toMatchObject({ ok: true })
}
