import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openStore } from './open.ts'
import { put } from './store.ts'

test('memory: opens a store in memory', async () => {
  const store = await openStore('memory:')
  await store.commit([put('a', '1')])
  expect(await store.get('a')).toMatchObject({ value: '1' })
})

test('sqlite: opens the file it names, with the folders on the way', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'vivarium-open-'))
  const store = await openStore(`sqlite:${join(folder, 'some/where/x.db')}`)
  await store.commit([put('a', '1')])
  await store.close()
  expect(existsSync(join(folder, 'some/where/x.db'))).toBe(true)
  rmSync(folder, { recursive: true })
})

test('what names no store is refused with the names there are', async () => {
  await expect(openStore('redis://localhost')).rejects.toThrow(/use memory:, sqlite:path or postgres:/)
  await expect(openStore('sqlite:')).rejects.toThrow(/has no file name/)
})

test('a file that does not exist is not created for a program that only reads', async () => {
  const path = join(tmpdir(), 'vivarium-nowhere', 'nigth.db')
  await expect(openStore(`sqlite:${path}`, { create: false })).rejects.toThrow(`The store sqlite:${path} does not exist`)
  expect(existsSync(path)).toBe(false)
})
