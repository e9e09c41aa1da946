import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { installedFrom, packageRoot } from './own-package.ts'

/** A project that asks for the package so. */
function project(spec: string): { readonly home: string; readonly root: string } {
  const home = mkdtempSync(join(tmpdir(), 'origin-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  const root = join(home, 'node_modules/vivarium')
  mkdirSync(root, { recursive: true })
  writeFileSync(join(home, 'package.json'), JSON.stringify({ dependencies: { vivarium: spec } }))
  return { home, root }
}

test('a package from a tarball is asked for by that tarball, wherever the new folder is', () => {
  const { home, root } = project('file:../packed/vivarium-0.1.0.tgz')
  expect(installedFrom(root)).toBe(`file:${join(home, '../packed/vivarium-0.1.0.tgz')}`)
})

test('one from a git address by that address, and one from the registry by its version', () => {
  const address = 'git+https://git.example/vivarium.git'
  expect(installedFrom(project(address).root)).toBe(address)
  expect(installedFrom(project('^0.1.0').root)).toBeUndefined()
})

test('a clone is asked for by its folder', () => {
  const root = packageRoot()
  expect(root).toBe(join(import.meta.dirname, '../..'))
  expect(installedFrom(root)).toBe(`file:${root}`)
})
