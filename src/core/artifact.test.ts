import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { artifactOf, checkContent, isMime, isOfType } from './artifact.ts'

const bytes = fc.uint8Array({ maxLength: 64 }).map(given => new Uint8Array(given))

it('E9-4: content is what was announced exactly if every byte of it is', async () => {
  await fc.assert(
    fc.asyncProperty(bytes, bytes, async (one, other) => {
      const artifact = await artifactOf(one, 'application/octet-stream')
      expect(artifact.digest).toBe(`sha256:${createHash('sha256').update(one).digest('hex')}`)
      await checkContent(artifact, one)
      const check = checkContent(artifact, other)
      if (Buffer.compare(one, other) === 0) await check
      else await expect(check).rejects.toMatchObject({ code: 'CHECKSUM_MISMATCH', category: 'invalid_input' })
    }),
    { numRuns: 50 },
  )
})

it('E9-4: the same bytes with another size or digest announced are refused', async () => {
  const artifact = await artifactOf('text', 'text/plain')
  for (const wrong of [{ size: 5 }, { digest: `sha256:${'0'.repeat(64)}` }])
    await expect(checkContent({ ...artifact, ...wrong }, artifact.bytes)).rejects.toMatchObject({ code: 'CHECKSUM_MISMATCH' })
})

it('text is counted in bytes', async () => {
  expect(await artifactOf('äh', 'text/plain')).toMatchObject({ size: 3, by: 'value' })
})

it.each([
  ['image/*', 'image/png', true],
  ['IMAGE/PNG', 'image/png; q=1', true],
  ['image/*', 'imagery/png', false],
  ['text/plain; charset=utf-8', 'text/plain', true],
  ['*/*', 'a/b', true],
  ['text/plain', 'text/html', false],
])('E10-5: %s means %s: %s', (pattern, mime, expected) => {
  expect(isOfType(pattern, mime)).toBe(expected)
})

it.each(['', 'text', 'text/', 'te xt/plain', 'text/plain\n/x', `a/${'b'.repeat(200)}`])('%j is no media type', async mime => {
  expect(isMime(mime)).toBe(false)
  await expect(artifactOf('', mime)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
})
