import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { type Blobs, memoryBlobs } from './blobs.ts'
import { directoryBlobs } from './directory-blobs.ts'

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

test('what a crash left half written is removed when nobody can be at it any more; what another process writes stays', async () => {
  const path = fresh()
  let now = Date.now()
  const blobs = await directoryBlobs({ path, now: () => now })
  const leave = (name: string): void => writeFileSync(join(path, 'incoming', name), 'x')
  const left = (): string[] => readdirSync(join(path, 'incoming'))
  for (const name of ['old', 'young']) leave(name)
  utimesSync(join(path, 'incoming', 'old'), now / 1000, now / 1000 - 3 * 3600)
  await directoryBlobs({ path, now: () => now })
  expect(left()).toEqual(['young'])
  now += 3 * 3_600_000
  await blobs.put(stream('a'))
  expect(left()).toEqual([])
})

describe('a draft in a folder', () => {
  const broken = (...chunks: string[]): ReadableStream<Uint8Array> => {
    const all = stream(...chunks).getReader()
    return new ReadableStream({
      async pull(controller) {
        const { done, value } = await all.read()
        if (done) controller.error(new Error('the sender is gone'))
        else controller.enqueue(value)
      },
    })
  }
  const opened = async (path: string): Promise<Required<Blobs>> => (await directoryBlobs({ path })) as Required<Blobs>

  test('keeps what broke off, and another goes on with it after a restart', async () => {
    const path = fresh()
    const draft = await (await opened(path)).drafts.begin()
    const kept: number[] = []
    const options = { onStored: async (size: number) => void kept.push(size) }
    await expect(draft.append(broken('hel'), options)).rejects.toThrow('the sender is gone')
    expect(kept).toEqual([3])
    const blobs = await opened(path)
    const next = await blobs.drafts.begin({ id: draft.id, size: 3 })
    expect(next.size).toBe(3)
    // Whoever still adds to the other one does not add to this one.
    await draft.append(stream('xxx'))
    const whole = await next.append(stream('lo'))
    expect(whole.size).toBe(5)
    expect(await blobs.get(whole.digest)).toBeUndefined()
    await next.publish()
    expect(await read(blobs, whole.digest)).toBe('hello')
    await blobs.drafts.discard(draft.id)
    expect(readdirSync(join(path, 'incoming'))).toEqual([])
  })

  test('tells how much is kept every few megabytes', async () => {
    const draft = await (await opened(fresh())).drafts.begin()
    const kept: number[] = []
    const piece = 'x'.repeat(1024 ** 2)
    await draft.append(stream(...Array.from({ length: 20 }, () => piece)), { onStored: async size => void kept.push(size) })
    expect(kept).toEqual([8 * 1024 ** 2, 16 * 1024 ** 2])
    await draft.discard()
  })

  test('gives the memory of chunks back that are its own, and of no others', async () => {
    const { drafts } = await opened(fresh())
    const chunks = (): Uint8Array<ArrayBuffer>[] => [new Uint8Array(10), new Uint8Array(20).subarray(5, 15)]
    const added = async (owned: boolean): Promise<number[]> => {
      const given = chunks()
      const source = new ReadableStream<Uint8Array>({
        start(controller) {
          for (const chunk of given) controller.enqueue(chunk)
          controller.close()
        },
      })
      await (await drafts.begin()).append(source, { owned })
      return given.map(({ buffer }) => buffer.byteLength)
    }
    expect([await added(false), await added(true)]).toEqual([
      [10, 20],
      [0, 20],
    ])
  })

  test('begins empty where the other one is gone, has less than was said, or is none', async () => {
    const path = fresh()
    const { drafts } = await opened(path)
    const one = await drafts.begin()
    await one.append(stream('abc'))
    writeFileSync(join(path, 'secret'), 'secret')
    for (const from of [
      { id: one.id, size: 4 },
      { id: crypto.randomUUID(), size: 1 },
      { id: '../secret', size: 1 },
    ]) {
      const draft = await drafts.begin(from)
      expect([from, draft.size]).toEqual([from, 0])
    }
  })

  test('is as good as published where the same content is there and its own file was removed', async () => {
    const blobs = await opened(fresh())
    const draft = await blobs.drafts.begin()
    const { digest } = await draft.append(stream('same'))
    await blobs.put(stream('same'))
    await blobs.drafts.discard(draft.id)
    await draft.publish()
    await blobs.delete(digest)
    await expect(draft.publish()).rejects.toThrow('ENOENT')
  })
})

test('a content that is deleted while it is read is read to its end', async () => {
  const blobs = await directoryBlobs({ path: fresh() })
  const content = 'x'.repeat(300_000)
  const { digest } = await blobs.put(stream(content))
  const found = await blobs.get(digest)
  await blobs.delete(digest)
  expect(await new Response(found?.stream).text()).toBe(content)
})

test('a reader of a folder may bring its memory along, and get it back', async () => {
  const blobs = await directoryBlobs({ path: fresh() })
  const { digest } = await blobs.put(stream('0123456789'))
  const { stream: part } = (await blobs.get(digest, { start: 2, end: 9 })) ?? { stream: stream() }
  const reader = part.getReader({ mode: 'byob' })
  let text = ''
  let buffer = new ArrayBuffer(4)
  for (;;) {
    const { done, value } = await reader.read(new Uint8Array(buffer))
    if (done) break
    expect(value.buffer.byteLength).toBe(4)
    text += new TextDecoder().decode(value)
    buffer = value.buffer as ArrayBuffer
  }
  expect(text).toBe('2345678')
})
