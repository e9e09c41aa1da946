import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openFileStorage } from './file-storage.ts'

const secret = 'a secret of some length'

async function place(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'storage-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return join(folder, 'tokens')
}

describe('tokens in a file', () => {
  it('are there for whoever knows the secret', async () => {
    const path = await place()
    const first = openFileStorage(path, secret)
    expect(await first.get('k')).toBeUndefined()
    await first.set('k', 'v')
    await first.set('__proto__', 'p')
    const second = openFileStorage(path, secret)
    expect([await second.get('k'), await second.get('__proto__')]).toEqual(['v', 'p'])
    await second.delete('k')
    expect(await first.get('k')).toBeUndefined()
  })

  it('are readable by their owner alone, and hold nothing in the clear', async () => {
    const path = await place()
    await openFileStorage(path, secret).set('issuer', 'CANARY')
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    const bytes = await readFile(path)
    expect([bytes.includes('CANARY'), bytes.includes('issuer')]).toEqual([false, false])
  })

  it('are written anew each time with other bytes', async () => {
    const path = await place()
    const storage = openFileStorage(path, secret)
    await storage.set('k', 'v')
    const before = await readFile(path)
    await storage.set('k', 'v')
    expect((await readFile(path)).equals(before)).toBe(false)
  })

  it.each<[string, (path: string) => Promise<unknown>]>([
    ['under another secret', path => openFileStorage(path, 'another secret of length').get('k')],
    [
      'that were changed',
      async path => {
        const bytes = await readFile(path)
        bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
        await writeFile(path, bytes)
        return openFileStorage(path, secret).get('k')
      },
    ],
    [
      'that were cut short',
      async path => {
        await writeFile(path, (await readFile(path)).subarray(0, 40))
        return openFileStorage(path, secret).get('k')
      },
    ],
    [
      'that are something else',
      async path => {
        await writeFile(path, 'hello')
        return openFileStorage(path, secret).set('k', 'v')
      },
    ],
  ])('%s cannot be read, and are not written over', async (_what, use) => {
    const path = await place()
    await openFileStorage(path, secret).set('k', 'v')
    await expect(use(path)).rejects.toThrow(/another secret, or is damaged/)
    expect(await stat(path)).toBeDefined()
  })

  it('survive many changes at once, and leave no drafts', async () => {
    const path = await place()
    const storage = openFileStorage(path, secret)
    await Promise.all(Array.from({ length: 30 }, (_, n) => storage.set(`k${n}`, `${n}`)))
    const values = await Promise.all(Array.from({ length: 30 }, (_, n) => storage.get(`k${n}`)))
    expect(values).toEqual(Array.from({ length: 30 }, (_, n) => `${n}`))
    expect(await readdir(join(path, '..'))).toEqual(['tokens'])
  })
})
