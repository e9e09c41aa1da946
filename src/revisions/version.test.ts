import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { version } from './revision.ts'

it('is the version that package.json names', () => {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  expect(version).toBe(manifest.version)
})
