import { connect } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decoy } from '../../../test/transports/outbound-servers.ts'
import { OutboundError } from '../../core/outbound.ts'
import { createOutbound } from './outbound.ts'

/** This machine and its neighbours, spelled in every way that some reader takes for them. `P` is the decoy's port. */
const spellings = [
  // By name
  'https://localhost:P/',
  'https://LOCALHOST:P/',
  'https://LocalHost.:P/',
  'https://localhost..:P/',
  'https://a.localhost:P/',
  'https://a.b.localhost:P/',
  'https://%6c%6f%63alhost:P/',
  'https://ⓛocalhost:P/',
  'https://ｌｏｃａｌｈｏｓｔ:P/',
  'https://local\u00adhost:P/',
  'https://lo\tcal\nhost:P/',
  'https:\\\\localhost:P\\',
  'https:localhost:P/',
  'https:///localhost:P/',
  '  https://localhost:P/  ',
  // IPv4, as the URL standard reads numbers
  'https://127.0.0.1:P/',
  'https://127.0.0.1.:P/',
  'https://127.1:P/',
  'https://127.0.1:P/',
  'https://127.255.255.254:P/',
  'https://2130706433:P/',
  'https://0x7f000001:P/',
  'https://0X7F.0.0.1:P/',
  'https://0x7f.1:P/',
  'https://017700000001:P/',
  'https://0177.0.0.1:P/',
  'https://0177.0x0.0.01:P/',
  'https://0x7f.0x0.0x0.0x1:P/',
  'https://00000177.000.000.00001:P/',
  'https://１２７.０.０.１:P/',
  'https://①②⑦.⓪.⓪.①:P/',
  'https://127。0。0。1:P/',
  'https://127%2e0%2e0%2e1:P/',
  'https://%31%32%37.0.0.1:P/',
  'https://0:P/',
  'https://0.0.0.0:P/',
  'https://0x0:P/',
  'https://00.1:P/',
  'https://255.255.255.255:P/',
  // IPv6
  'https://[::1]:P/',
  'https://[0:0:0:0:0:0:0:1]:P/',
  'https://[0000::0001]:P/',
  'https://[::]:P/',
  'https://[::127.0.0.1]:P/',
  'https://[::7f00:1]:P/',
  'https://[::ffff:127.0.0.1]:P/',
  'https://[::ffff:7f00:1]:P/',
  'https://[0:0:0:0:0:ffff:127.0.0.1]:P/',
  'https://[::ffff:0:127.0.0.1]:P/',
  'https://[64:ff9b::127.0.0.1]:P/',
  'https://[64:ff9b::a9fe:a9fe]:P/',
  'https://[64:ff9b:1::7f00:1]:P/',
  'https://[2002:7f00:1::1]:P/',
  'https://[2002:a00:1::]:P/',
  'https://[2001:0:7f00:1::1]:P/',
  'https://[2001:0:1:2:3:4:80ff:fffe]:P/',
  'https://[2a00:1::5efe:10.0.0.1]:P/',
  'https://[2a00:1::200:5efe:127.0.0.1]:P/',
  'https://[fe80::1]:P/',
  'https://[fe80::1%25lo]:P/',
  'https://[::1%25lo]:P/',
  'https://[fec0::1]:P/',
  'https://[fd00::1]:P/',
  'https://[ff02::1]:P/',
  'https://[100::1]:P/',
  'https://[2001:db8::1]:P/',
  'https://[4000::1]:P/',
  'https://[fd00:ec2::254]:P/',
  // Neighbours
  'https://10.0.0.1:P/',
  'https://172.16.0.1:P/',
  'https://172.31.255.255:P/',
  'https://192.168.1.1:P/',
  'https://169.254.169.254:P/latest/meta-data/',
  'https://0xa9fea9fe:P/',
  'https://2852039166:P/',
  'https://0251.0376.0251.0376:P/',
  'https://100.64.0.1:P/',
  'https://192.0.0.192:P/',
  'https://192.0.2.1:P/',
  'https://198.18.0.1:P/',
  'https://203.0.113.9:P/',
  'https://224.0.0.1:P/',
  'https://240.0.0.1:P/',
  // Names that DNS sends inside
  'https://rebind.example:P/',
  'https://127.0.0.1.nip.example:P/',
  'https://localhost.example:P/',
  'https://xn--lcalhost-6bb.example:P/',
  'https://intranet:P/',
  'https://metadata.google.internal:P/',
  'https://printer.local:P/',
  // Credentials that look like a host, and the reverse
  'https://example.com@127.0.0.1:P/',
  'https://user:password@example.com:P/',
  'https://example.com:443@localhost:P/',
  'https://127.0.0.1:P\\@example.com/',
  'https://127.0.0.1:P#@example.com/',
  // Other schemes
  'http://127.0.0.1:P/',
  'http://example.com:P/',
  'HTTP://[::1]:P/',
  'ws://127.0.0.1:P/',
  'wss://127.0.0.1:P/',
  'ftp://127.0.0.1:P/',
  'file:///etc/hosts',
  'file://127.0.0.1/etc/hosts',
  'gopher://127.0.0.1:P/_GET',
  'data:text/plain,secret',
  'blob:https://127.0.0.1:P/1',
  'javascript:1',
  'view-source:https://127.0.0.1:P/',
  '//127.0.0.1:P/',
  '127.0.0.1:P',
  // What is no name
  'https://:P/',
  'https://127.0.0.256:P/',
  'https://0x100000000:P/',
  'https://1.2.3.4.5:P/',
  'https://a..b:P/',
  "https://a'b:P/",
  `https://${'a'.repeat(64)}.example:P/`,
  'https://example.com:22/',
  'https://example.com:6379@localhost:P/',
  'https://example.com:99999/',
  `https://example.com/${'a'.repeat(9_000)}`,
]

describe('an address that a peer chose', () => {
  it('is told in many ways', () => {
    expect(new Set(spellings).size).toBeGreaterThanOrEqual(60)
  })

  it('is refused in every spelling that leads inside, and nothing knocks there (security: 60 spellings, 0 hits)', async () => {
    const trap = await decoy()
    const outbound = createOutbound({ resolve: async () => ['127.0.0.1'], timeout: '2s' })
    const verdicts: string[] = []
    for (const spelling of spellings) {
      const error = await outbound(spelling.replaceAll(/(?<=:)P/g, `${trap.port}`)).catch((thrown: unknown) => thrown)
      if (!(error instanceof OutboundError && error.kind === 'refused')) verdicts.push(`${spelling}: ${error}`)
    }
    expect(verdicts).toEqual([])
    expect(trap.hits).toBe(0)
  })

  it('would find the trap open, were it not refused', async () => {
    const trap = await decoy()
    for (const host of ['127.0.0.1', '127.255.255.254', '0.0.0.0', trap.six ? '::1' : '127.0.0.1'])
      await new Promise(resolve => connect(trap.port, host).on('close', resolve).resume())
    expect(trap.hits).toBe(4)
  })

  it('is refused when it comes from DNS in any form, alone or among public ones', async () => {
    const inside = [
      '127.0.0.1',
      '::1',
      '10.0.0.1',
      '169.254.169.254',
      '::ffff:10.0.0.1',
      'fe80::1%eth0',
      '::1%lo',
      '0x7f.1',
      'x',
      '',
    ]
    for (const address of inside)
      for (const answer of [[address], ['93.184.216.34', address]]) {
        const outbound = createOutbound({ resolve: async () => answer, timeout: '2s' })
        await expect(outbound('https://name.example/')).rejects.toMatchObject({ kind: 'refused' })
      }
  })

  it('is refused for any private IPv4 address in any notation of the URL standard', async () => {
    const outbound = createOutbound({ resolve: async name => Promise.reject(new Error(`asked for ${name}`)) })
    await fc.assert(
      fc.asyncProperty(insideAddress, notation, tail, async (octets, write, end) => {
        const url = `https://${write(octets)}${end}`
        // The standard's own reader must agree that this is the address.
        expect(new URL(url).hostname).toBe(octets.join('.'))
        await expect(outbound(url)).rejects.toMatchObject({ name: 'OutboundError', kind: 'refused' })
      }),
      { numRuns: 500 },
    )
  })

  it('is refused for any private IPv4 address inside an IPv6 one', async () => {
    const outbound = createOutbound()
    await fc.assert(
      fc.asyncProperty(insideAddress, embedding, async (octets, embed) => {
        await expect(outbound(`https://[${embed(octets)}]/`)).rejects.toMatchObject({ name: 'OutboundError', kind: 'refused' })
      }),
    )
  })
})

type Octets = readonly [number, number, number, number]

const octet = fc.nat(255)
const insideAddress: fc.Arbitrary<Octets> = fc.oneof(
  fc.tuple(fc.constantFrom(0, 10, 127), octet, octet, octet),
  fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), octet, octet),
  fc.tuple(fc.constant(192), fc.constant(168), octet, octet),
  fc.tuple(fc.constant(169), fc.constant(254), octet, octet),
  fc.tuple(fc.constant(100), fc.integer({ min: 64, max: 127 }), octet, octet),
  fc.tuple(fc.integer({ min: 224, max: 255 }), octet, octet, octet),
)

const digits = fc.constantFrom<(n: number) => string>(
  n => `${n}`,
  n => `0x${n.toString(16)}`,
  n => `0X${n.toString(16).toUpperCase()}`,
  n => `0x000${n.toString(16)}`,
  n => `0${n.toString(8)}`,
  n => `000${n.toString(8)}`,
)

/** Four, three, two or one number, each in a base of its own, then perhaps in other characters for the same digits. */
const notation = fc
  .tuple(
    fc.constantFrom(1, 2, 3, 4),
    fc.array(digits, { minLength: 4, maxLength: 4 }),
    fc.constantFrom<Disguise>(plain, wide, percent, dots),
  )
  .map(([count, bases, disguise]) => (octets: Octets) => {
    const last = octets.slice(count - 1).reduce((sum, each) => sum * 256 + each, 0)
    const numbers = [...octets.slice(0, count - 1), last]
    return disguise(numbers.map((each, at) => (bases[at] ?? String)(each)).join('.'))
  })

type Disguise = (text: string) => string
function plain(text: string): string {
  return text
}
function wide(text: string): string {
  return text.replace(/\d/g, digit => String.fromCodePoint(0xff10 + Number(digit)))
}
function percent(text: string): string {
  return text.replace(/./g, each => `%${each.charCodeAt(0).toString(16)}`)
}
function dots(text: string): string {
  return text.replaceAll('.', '。')
}

const tail = fc.constantFrom('', '/', ':8443/', './', '.:8443/?a#b')

const hex = ([a, b, c, d]: Octets): string => `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
const embedding = fc.constantFrom<(octets: Octets) => string>(
  octets => `::${octets.join('.')}`,
  octets => `::ffff:${octets.join('.')}`,
  octets => `::ffff:${hex(octets)}`,
  octets => `::ffff:0:${octets.join('.')}`,
  octets => `64:ff9b::${octets.join('.')}`,
  octets => `64:ff9b:1:${hex(octets)}::`,
  octets => `2002:${hex(octets)}::1`,
  octets => `2001:0:${hex(octets)}::`,
  octets => `2a00:1450::5efe:${hex(octets)}`,
)
