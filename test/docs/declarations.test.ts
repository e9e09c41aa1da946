import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const types = join(import.meta.dirname, '../../dist/types')

it('the declarations import what is there at run time, and use no type that TypeScript 5.4 lacks', () => {
  const files = globSync('**/*.d.ts', { cwd: types })
  expect(files).toContain(join('client', 'index.d.ts'))
  const newer = /(?:from|import\()\s*['"]\.[^'"]*\.ts['"]|Uint8Array</
  expect(files.filter(file => newer.test(readFileSync(join(types, file), 'utf8')))).toEqual([])
})
