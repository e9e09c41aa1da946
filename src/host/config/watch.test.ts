import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { realClock } from '../../core/clock.ts'
import { fakeClock } from '../../testing/clock.ts'
import { watchText } from '../foundation.ts'

async function file(text: string) {
  const folder = await mkdtemp(join(tmpdir(), 'vivarium-watch-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'config.json')
  await writeFile(path, text)
  return { path, folder }
}

test('a file that is written, or replaced by another, is read again', async () => {
  const { path, folder } = await file('one')
  const seen: string[] = []
  let told = Promise.withResolvers<void>()
  const changed = async (text: string) => {
    seen.push(text)
    told.resolve()
  }
  const stop = watchText(path, 'one', { clock: realClock, changed, failed: () => {}, settleMs: 5, everyMs: 200 })
  await writeFile(path, 'two')
  await told.promise
  told = Promise.withResolvers()
  await writeFile(join(folder, 'new'), 'three')
  await rename(join(folder, 'new'), path)
  await told.promise
  await stop()
  expect(seen).toEqual(['two', 'three'])
})

test('a file that says the same as before tells nobody', async () => {
  const { path } = await file('one')
  const clock = fakeClock()
  const seen: string[] = []
  const stop = watchText(path, 'one', { clock, changed: async text => void seen.push(text), failed: () => {} })
  clock.advance(10_000)
  await stop()
  expect(seen).toEqual([])
})

test('a file that is gone is told as such, and read again when it is back', async () => {
  const { path } = await file('one')
  const seen: string[] = []
  const failed = Promise.withResolvers<void>()
  const back = Promise.withResolvers<void>()
  const changed = async (text: string) => {
    seen.push(text)
    back.resolve()
  }
  const stop = watchText(path, 'one', { clock: realClock, changed, failed: () => failed.resolve(), settleMs: 5, everyMs: 50 })
  await rm(path)
  await failed.promise
  await writeFile(path, 'two')
  await back.promise
  await stop()
  expect(seen.at(-1)).toBe('two')
})
