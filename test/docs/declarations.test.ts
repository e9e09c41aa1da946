import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { findSilent, publicSurface } from '../../scripts/api/surface.ts'
import { PUBLIC } from '../../scripts/lib/entries.ts'

const types = join(import.meta.dirname, '../../dist/types')

it('the declarations import what is there at run time, and use no type that TypeScript 5.4 lacks', () => {
  const files = globSync('**/*.d.ts', { cwd: types })
  expect(files).toContain(join('client', 'index.d.ts'))
  const newer = /(?:from|import\()\s*['"]\.[^'"]*\.ts['"]|Uint8Array</
  expect(files.filter(file => newer.test(readFileSync(join(types, file), 'utf8')))).toEqual([])
})

it('the declarations as published tell of every public name and member what it is, wherever an editor shows it', () => {
  const entries = Object.values(PUBLIC).map(file => file.replace(/^src/, 'dist/types').replace(/\.ts$/, '.d.ts'))
  const surface = publicSurface(entries)
  expect(surface.length).toBeGreaterThan(3_000)
  expect(surface.map(({ name }) => name)).toContain('Server.tool')
  expect(findSilent(surface)).toEqual([])
})
