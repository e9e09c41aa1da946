import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { Blobs } from './blobs.ts'
import { directoryBlobs } from './directory-blobs.ts'
import { memoryBlobs } from './memory-blobs.ts'

const folder = mkdtempSync(join(tmpdir(), 'vivarium-blobs-'))
let folders = 0
const fresh = (): string => join(folder, String(++folders))
afterAll(() => rmSync(folder, { recursive: true }))

const stream = (...chunks: string[]): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk))
      controller.close()
    },
  })
const read = async (blobs: Blobs, digest: string, range?: object): Promise<string | undefined> => {
  const found = await blobs.get(digest, range)
  return found === undefined ? undefined : new Response(found.stream).text()
}

describe.each([
  ['memory', async () => memoryBlobs({ bytes: 4096 })],
  ['directory', () => directoryBlobs({ path: fresh(), bytes: 4096 })],
])('blobs in %s', (_, open) => {
  test('contents are named by their SHA-256 and come back whole', async () => {
    const blobs = await open()
    const blob = await blobs.put(stream('hel', 'lo'))
    expect(blob).toEqual({ digest: 'sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824', size: 5 })
    expect(await read(blobs, blob.digest)).toBe('hello')
  })
  test('a range gives its bytes, clipped to what there is', async () => {
    const blobs = await open()
    const { digest } = await blobs.put(stream('0123456789'))
    expect(await read(blobs, digest, { start: 2, end: 5 })).toBe('234')
    expect(await read(blobs, digest, { start: 8, end: 99 })).toBe('89')
    expect(await read(blobs, digest, { start: 10 })).toBe('')
    expect(await read(blobs, digest, { end: 0 })).toBe('')
  })
  test('the same contents are kept once, and empty ones too', async () => {
    const blobs = await open()
    expect(await blobs.put(stream('x'.repeat(4000)))).toEqual(await blobs.put(stream('x'.repeat(4000))))
    const { digest } = await blobs.put(stream())
    expect(await read(blobs, digest)).toBe('')
  })
  test('what is deleted, or was never there, or is no digest, is absent', async () => {
    const blobs = await open()
    const { digest } = await blobs.put(stream('a'))
    await blobs.delete(digest)
    await blobs.delete(digest)
    for (const name of [digest, `sha256:${'0'.repeat(64)}`, '../x', 'sha256:../../etc/passwd']) {
      expect(await blobs.get(name)).toBeUndefined()
      await blobs.delete(name)
    }
  })
  test('more than the limit is refused', async () => {
    const blobs = await open()
    await expect(blobs.put(stream('x'.repeat(3000), 'x'.repeat(3000)))).rejects.toThrow(/larger than 4096 bytes/)
    await expect(blobs.put(stream('xxxx'), { bytes: 3 })).rejects.toThrow(/larger than 3 bytes/)
  })
})

test('a folder holds nothing of what was refused or broke off', async () => {
  const path = fresh()
  const blobs = await directoryBlobs({ path })
  const broken = new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.enqueue(new Uint8Array(10))
      controller.error(new Error('the sender is gone'))
    },
  })
  await expect(blobs.put(broken)).rejects.toThrow('the sender is gone')
  await expect(blobs.put(stream('xxxx'), { bytes: 3 })).rejects.toThrow()
  expect(readdirSync(path)).toEqual(['incoming'])
  expect(readdirSync(join(path, 'incoming'))).toEqual([])
})

test('what a crash left half written is removed when the folder is opened', async () => {
  const path = fresh()
  await directoryBlobs({ path })
  writeFileSync(join(path, 'incoming', 'half'), 'x')
  await directoryBlobs({ path })
  expect(existsSync(join(path, 'incoming', 'half'))).toBe(false)
})
