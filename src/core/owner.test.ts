import fc from 'fast-check'
import { expect, it } from 'vitest'
import { accountKey, ownerKey } from './accounts.ts'

const id = fc.string({ unit: fc.constantFrom('a', '/', '"', '\\', '\u00e9', '\ud800', '\ufffd'), maxLength: 6 })
const of = (id: string) => ownerKey({ carrier: 'http', principal: { id } })

it('C8: two principals never share a key, and one has the same key on every carrier', async () => {
  await fc.assert(
    fc.asyncProperty(id, id, async (one, other) => {
      expect((await of(one)) === (await of(other))).toBe(one === other)
      expect(await ownerKey({ carrier: 'stdio', principal: { id: one } })).toBe(await of(one))
    }),
    {
      numRuns: 50,
      examples: [
        ['\ud800', '\ufffd'],
        ['\ud800', '"\\ud800"'],
      ],
    },
  )
})

it('C8: a key is short, shows nothing of the identity, and is safe within a path of keys', async () => {
  expect(await of('https://issuer.example/ann')).toMatch(/^[\w-]{22}$/)
})

it('C8: on a pipe the owner of the process is meant, on the network nobody', async () => {
  expect(ownerKey({ carrier: 'stdio' })).toBe('~process')
  expect(ownerKey({ carrier: 'http' })).toBeUndefined()
  expect(await of('~process')).not.toBe('~process')
})

it('X10: a known principal is answered at once, also after many others, and the same', async () => {
  const first = await of('first')
  expect(of('first')).toBe(first)
  await Promise.all(Array.from({ length: 12_000 }, (_, i) => of(`other ${i}`)))
  expect(typeof of('first')).toBe('object')
  expect(await of('first')).toBe(first)
})

it('a user has one account, whichever program acts for it, and an owner with each', async () => {
  const as = (client: string) => ({ id: `https://a.example ann ${client}`, issuer: 'https://a.example', subject: 'ann', client })
  const [one, two] = [as('editor'), as('shell')]
  const account = (principal: ReturnType<typeof as>) => accountKey({ carrier: 'http', connection: {}, principal })
  expect(await account(one)).toBe(await account(two))
  expect(await ownerKey({ carrier: 'http', principal: one })).not.toBe(await ownerKey({ carrier: 'http', principal: two }))
  expect(await account({ ...one, issuer: 'https://b.example' })).not.toBe(await account(one))
})

it('whoever is not known has the account of its address of IPv4, or of the first 48 bits of one of IPv6', async () => {
  const from = (remoteAddress?: string) => accountKey({ carrier: 'http', connection: { remoteAddress } })
  expect(await from('192.0.2.1')).toBe(await from('::ffff:192.0.2.1'))
  expect(await from('192.0.2.1')).not.toBe(await from('192.0.2.2'))
  expect(await from('2001:db8:1:2:aaaa::1')).toBe(await from('2001:db8:1:ff02::ffff'))
  expect(await from('2001:db8::1')).toBe(await from('2001:db8:0:0:5::'))
  expect(await from('2001:db8:1:2::1')).not.toBe(await from('2001:db8:2:2::1'))
  expect(await from()).toBe('~anonymous')
  expect(await from('192.0.2.1')).toMatch(/^[\w-]{22}$/)
})
