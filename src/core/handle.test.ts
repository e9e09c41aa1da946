import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Clock } from './clock.ts'
import { createSeal, HandleError, type HandlePurpose, handleLimit } from './handle.ts'
import { Problem } from './problem.ts'

const secret = 'a secret that is long enough to be one'
const time = { now: 1_000 }
const clock: Clock = { now: () => time.now, setTimeout: () => () => {} }
const seal = createSeal({ secrets: secret, clock })
const purpose: HandlePurpose = { kind: 'state', principal: 'ann', audience: 'tickets', bound: 'digest' }
const content = { ...purpose, expiresAt: 2_000, data: { step: 2, answers: ['ä', null] } }

async function refusal(opening: Promise<unknown>): Promise<unknown> {
  return opening.then(
    () => 'opened',
    (error: unknown) => error,
  )
}

async function expectRefused(opening: Promise<unknown>): Promise<void> {
  const error = await refusal(opening)
  expect(error).toBeInstanceOf(HandleError)
  expect(String(error)).toBe(String(new HandleError()))
  expect(Object.keys(error as object)).toEqual(Object.keys(new HandleError()))
}

it('what was sealed for a purpose is opened for the same purpose', async () => {
  expect(await seal.open(await seal.seal(content), purpose)).toEqual(content.data)
})

it('any JSON value survives', async () => {
  await fc.assert(
    fc.asyncProperty(fc.jsonValue(), async data => {
      const token = await seal.seal({ kind: 'k', expiresAt: 2_000, data })
      expect(await seal.open(token, { kind: 'k' })).toEqual(JSON.parse(JSON.stringify(data)))
    }),
    { numRuns: 50 },
  )
})

it('the same content is another token each time, and shows nothing of what is in it', async () => {
  const [one, other] = await Promise.all([seal.seal(content), seal.seal(content)])
  expect(one).not.toBe(other)
  expect(one).toMatch(/^[A-Za-z0-9_-]+$/)
  expect(Buffer.from(one, 'base64url').toString('latin1')).not.toMatch(/tickets|"step"/)
})

it('any character changed anywhere gives the one same refusal (trap 16)', async () => {
  const token = await seal.seal(content)
  const other = fc.constantFrom(...'ABCxyz019-_=+ é')
  await fc.assert(
    fc.asyncProperty(fc.nat({ max: token.length - 1 }), other, async (at, char) => {
      fc.pre(token[at] !== char)
      await expectRefused(seal.open(token.slice(0, at) + char + token.slice(at + 1), purpose))
    }),
    { numRuns: 300 },
  )
})

it('every bit flipped gives the one same refusal', async () => {
  const bytes = Buffer.from(await seal.seal(content), 'base64url')
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const flipped = Buffer.from(bytes)
    flipped[bit >> 3]! ^= 1 << (bit & 7)
    await expectRefused(seal.open(flipped.toString('base64url'), purpose))
  }
})

it('the unused bits of the last character are no second spelling of a token', async () => {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  for (const data of ['', 'x', 'xx']) {
    const token = await seal.seal({ kind: 'k', expiresAt: 2_000, data })
    for (const char of alphabet) {
      if (!token.endsWith(char)) await expectRefused(seal.open(token.slice(0, -1) + char, { kind: 'k' }))
    }
  }
})

it.each<[string, HandlePurpose]>([
  ['another kind', { ...purpose, kind: 'cursor' }],
  ['another principal', { ...purpose, principal: 'bob' }],
  ['no principal', { ...purpose, principal: undefined }],
  ['another audience', { ...purpose, audience: 'other' }],
  ['other arguments', { ...purpose, bound: 'else' }],
  ['the same words in other places', { ...purpose, principal: 'tickets', audience: 'ann' }],
])('%s is refused like a forgery', async (_, other) => {
  await expectRefused(seal.open(await seal.seal(content), other))
})

it.each([
  ['nothing', undefined],
  ['a number', 7],
  ['no text', ''],
  ['garbage', 'garbage'],
  ['a long one', 'A'.repeat(handleLimit + 1)],
  ['a short one', 'AQ'],
  ['zeros', 'A'.repeat(400)],
])('%s is refused like a forgery', async (_, token) => {
  await expectRefused(seal.open(token, purpose))
})

it('an expired token is refused exactly like a forged one, from the very millisecond', async () => {
  const token = await seal.seal(content)
  time.now = 1_999
  expect(await seal.open(token, purpose)).toEqual(content.data)
  time.now = 2_000
  await expectRefused(seal.open(token, purpose))
  time.now = 1_000
})

it('a token under a foreign key is refused', async () => {
  await expectRefused(createSeal({ secrets: `${secret}!`, clock }).open(await seal.seal(content), purpose))
})

it('replicas with one secret open what the other sealed, given as text or as bytes', async () => {
  const replica = createSeal({ secrets: new TextEncoder().encode(secret), clock })
  expect(await replica.open(await seal.seal(content), purpose)).toEqual(content.data)
  expect([seal.durable, replica.durable]).toEqual([true, true])
})

it('a new secret seals while the old one still opens, until it is taken away', async () => {
  const fresh = 'another secret that is long enough too'
  const old = await seal.seal(content)
  const rotated = createSeal({ secrets: [fresh, secret], clock })
  expect(await rotated.open(old, purpose)).toEqual(content.data)
  const later = createSeal({ secrets: [fresh], clock })
  expect(await later.open(await rotated.seal(content), purpose)).toEqual(content.data)
  await expectRefused(later.open(old, purpose))
})

it('what a rotated seal makes is under the newest key alone, whichever opened before', async () => {
  const secrets = ['newest', 'middle', 'oldest'].map(name => `${name} secret that is long enough to be one`)
  const rings = secrets.map(secret => createSeal({ secrets: secret, clock }))
  const rotated = createSeal({ secrets, clock })
  for (const ring of rings) expect(await rotated.open(await ring.seal(content), purpose)).toEqual(content.data)
  const token = await rotated.seal(content)
  expect(await rings[0]?.open(token, purpose)).toEqual(content.data)
  for (const ring of rings.slice(1)) await expectRefused(ring.open(token, purpose))
})

it('every handle has an id of its own, which is the same whoever reads it', async () => {
  const replica = createSeal({ secrets: secret, clock })
  const [one, other] = await Promise.all([seal.seal(content), seal.seal(content)])
  const read = await seal.read(one, purpose)
  expect(read).toEqual({ data: content.data, expiresAt: 2_000, id: expect.stringMatching(/^[\w-]{24}$/) })
  expect((await replica.read(one, purpose)).id).toBe(read.id)
  expect((await seal.read(other, purpose)).id).not.toBe(read.id)
  await expectRefused(seal.read(one, { ...purpose, principal: 'bob' }))
})

it.each([[undefined], [[]]])('without a secret (%j) it makes its own, which nobody else has', async secrets => {
  const alone = createSeal({ secrets, clock })
  expect(alone.durable).toBe(false)
  const token = await alone.seal(content)
  expect(await alone.open(token, purpose)).toEqual(content.data)
  await expectRefused(createSeal({ secrets, clock }).open(token, purpose))
})

it.each(['short', new Uint8Array(31)])('a secret that could be guessed is refused with the way to a better one', weak => {
  expect(() => createSeal({ secrets: weak })).toThrow(/at least 32 .*openssl rand/)
})

it('a token never grows beyond 64 KiB: more is refused with the way out', async () => {
  const sealOf = (length: number) => seal.seal({ kind: 'k', expiresAt: 2_000, data: 'x'.repeat(length) })
  expect((await sealOf(49_000)).length).toBeLessThanOrEqual(handleLimit)
  expect(await seal.open(await sealOf(49_000), { kind: 'k' })).toHaveLength(49_000)
  const error = await refusal(sealOf(49_200))
  expect(error).toBeInstanceOf(Problem)
  expect(error).toMatchObject({ code: 'PAYLOAD_TOO_LARGE', suggestion: expect.stringContaining('Put less') })
})

it.each([Number.NaN, Number.POSITIVE_INFINITY])('a handle that ends at %d is refused: all of them end', async expiresAt => {
  await expect(seal.seal({ kind: 'k', expiresAt, data: 1 })).rejects.toThrow('needs an expiry time')
})
