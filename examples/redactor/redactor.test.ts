import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { connectInMemory } from 'vivarium/testing'
import { answered, command, liveHost, patient, wires } from '../../test/examples/live-host.ts'
import { cardsIn, passesLuhn } from './cards.ts'
import { createRedactor } from './redactor.ts'
import { kinds, redact } from './secrets.ts'

const pem = String(generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }))
// Written in two pieces, so that no scanner takes this file for a leak.
const github = `ghp_${'a1B2'.repeat(9)}`
const aws = `AKIA${'ABCDEFGH23456789'}`
const jwt = ['eyJhbGciOiJIUzI1NiJ9', 'eyJzdWIiOiIxMjM0NTY3ODkwIn0', 'dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P'].join('.')

test.each(wires)(
  'a live host on %s shows answers without secrets, and learns what was taken out but not what it was',
  async revision => {
    const { live } = await liveHost(createRedactor(), { revision })
    expect(live.hooks.after).toBe('blocking')
    const said = `Key: ${github}, mail ada@example.com and bob@example.com`
    const after = await live.afterInference(answered('What is the key?', said), patient)
    expect(after).toEqual({
      featureSet: 'redactor.answers',
      modifiedResponse: 'Key: [redacted-token], mail [redacted-email] and [redacted-email]',
      metadata: {
        redacted: [
          { kind: 'token', count: 1 },
          { kind: 'email', count: 2 },
        ],
      },
    })
    expect((await live.afterInference(answered('Hello', 'Nothing to hide'), patient))?.modifiedResponse).toBeUndefined()
  },
)

test('a plain host has the tool, and the environment says what may be seen', async () => {
  const target = command('redactor', [], { REDACTOR_KINDS: 'email, card', REDACTOR_ALLOW: '@example.org' })
  const { mcp } = await liveHost(target, { enabled: [] })
  const text = `a@example.org b@example.com 4111-1111-1111-1111 ${aws}`
  expect((await mcp.callTool('redact_text', { text })).structured).toEqual({
    text: `a@example.org [redacted-email] [redacted-card] ${aws}`,
    redacted: [
      { kind: 'email', count: 1 },
      { kind: 'card', count: 1 },
    ],
  })
  const plain = await connectInMemory(createRedactor())
  onTestFinished(() => plain.close())
  expect((await plain.callTool('redact_text', { text: 'Fine' })).structured).toEqual({ text: 'Fine', redacted: [] })
})

test.each([
  ['private-key', `${pem.trim()} and on`, '[redacted-private-key] and on'],
  ['private-key', `cut off: ${pem.slice(0, 80)}`, 'cut off: [redacted-private-key]'],
  ['api-key', `id ${aws}.`, 'id [redacted-api-key].'],
  ['api-key', `use sk-proj-${'x'.repeat(40)}`, 'use [redacted-api-key]'],
  ['api-key', `${'sk'}_live_${'4eC39HqLyjWDarjtT1zdp7dc'}`, '[redacted-api-key]'],
  ['token', `Authorization: Bearer ${'q'.repeat(24)}`, 'Authorization: Bearer [redacted-token]'],
  ['token', `t=${jwt};`, 't=[redacted-token];'],
  ['password', 'postgres://app:s3cret!@db.local/x', 'postgres://app:[redacted-password]@db.local/x'],
  ['password', '{"password": "correct horse"}', '{"password": "[redacted-password] horse"}'],
  ['password', 'API_KEY=abcdef123456', 'API_KEY=[redacted-password]'],
  ['card', 'order 12345 4111 1111 1111 1111 in 2026', 'order 12345 [redacted-card] in 2026'],
  ['email', 'first.last+tag@mail.example.co.uk!', '[redacted-email]!'],
] as const)('%s is found in %j', (kind, text, clean) => {
  expect(redact(text)).toEqual({ text: clean, redacted: [{ kind, count: 1 }] })
})

test.each([
  'Call +49 30 1234567 or see section 4111 of ISO 27001:2022',
  'commit 9fceb02d0ae598e95dc970b74767f19372d61af8, 1234567890123456',
  'a@b, @types/node, user@localhost, 12:30@work',
  'The secret: be kind. sk-short, a token of thanks, the basic principles',
])('%j is left as it is', text => {
  expect(redact(text)).toEqual({ text, redacted: [] })
})

const digits = (length: number) => fc.array(fc.nat(9), { minLength: length, maxLength: length }).map(found => found.join(''))

const card = fc.tuple(fc.constantFrom('4', '51', '2221'), digits(11), fc.constantFrom('', ' ', '-')).map(([head, tail, gap]) => {
  const body = (head + tail).slice(0, 15)
  const whole = [...'0123456789'].map(last => body + last).find(passesLuhn) ?? ''
  return whole.replace(/(\d{4})(?=\d)/g, `$1${gap}`)
})

const secret = fc.oneof(card, fc.constantFrom(github, aws, jwt, pem, 'ada@example.com'))

test('whatever stands around a secret it is taken out, and doing it again changes nothing', () => {
  const around = fc.string({ maxLength: 40 }).map(text => text.replace(/[\w.%+@:/-]/g, ' '))
  fc.assert(
    fc.property(fc.array(fc.tuple(around, secret), { minLength: 1, maxLength: 5 }), parts => {
      const text = parts.map(([before, hidden]) => `${before} ${hidden} `).join('')
      const once = redact(text)
      for (const [, hidden] of parts) expect(once.text).not.toContain(hidden)
      expect(once.redacted.reduce((sum, { count }) => sum + count, 0)).toBe(parts.length)
      expect(redact(once.text)).toEqual({ text: once.text, redacted: [] })
    }),
  )
})

test('a card is one in whichever row of groups it stands, and one wrong digit makes it none', () => {
  fc.assert(
    fc.property(card, digits(3), fc.nat(15), (number, other, at) => {
      expect(cardsIn(`1${other} ${number}`)).toEqual([{ from: 5, to: number.length + 5 }])
      const bare = number.replace(/\D/g, '')
      const wrong = bare.slice(0, at) + ((Number(bare[at]) + 1) % 10) + bare.slice(at + 1)
      expect(passesLuhn(wrong)).toBe(false)
    }),
  )
})

test('text made to be slow is read to its end all the same', () => {
  const hostile = ['-----BEGIN PRIVATE KEY-----', 'a@', 'a.', 'eyJ', 'Bearer ', 'x://', '4 ', 'password=', '1-', 'sk-']
  for (const piece of hostile) {
    const text = piece.repeat(400_000 / piece.length)
    // Twice the length may cost four times as much on a bad day; what is quadratic here costs minutes.
    expect(redact(text, { kinds: [...kinds] }).text.length).toBeLessThanOrEqual(text.length * 4)
  }
})
