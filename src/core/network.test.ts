import { expect, it } from 'vitest'
import { isLoopbackNetwork, networkOf, siteOf } from './accounts.ts'

it('one address of IPv4 is a network, also where it is written as one of IPv6', () => {
  expect(networkOf('192.0.2.1')).toBe('192.0.2.1')
  for (const same of [
    '::ffff:192.0.2.1',
    '::FFFF:192.0.2.1',
    '::ffff:c000:201',
    '0:0:0:0:0:ffff:192.0.2.1',
    '0:0:0:0:0:FFFF:C000:0201',
  ])
    expect(networkOf(same)).toBe('192.0.2.1')
  expect(networkOf('192.0.2.2')).not.toBe(networkOf('192.0.2.1'))
  expect(networkOf('::ffff:192.0.2.2')).not.toBe(networkOf('::ffff:192.0.2.1'))
})

it('the first 56 bits of an address of IPv6 are a network, wherever its zeros are left out', () => {
  const network = networkOf('2001:db8:1:0:1:2:3:4')
  for (const same of [
    '2001:db8:1::5',
    '2001:DB8:1:0:ffff::',
    '2001:0db8:0001:00ff::1',
    '2001:db8:1:7::5',
    '2001:db8:1:0:1:2:192.0.2.1',
  ])
    expect(networkOf(same)).toBe(network)
  expect(networkOf('2001:db8:1:100::5')).not.toBe(network)
  expect(networkOf('2001:db8:2::5')).not.toBe(network)
  expect(networkOf('fe80::1%eth0')).toBe(networkOf('fe80::2%eth1'))
})

it('networks with the same first 48 bits are one site; one of IPv4 is in none', () => {
  const site = (address: string) => siteOf(networkOf(address))
  expect(site('2001:db8:1:100::5')).toBe(site('2001:db8:1:ff00::5'))
  expect(site('2001:db8:1:100::5')).not.toBe(site('2001:db8:2:100::5'))
  expect(site('::ffff:192.0.2.1')).toBeUndefined()
})

it('this machine is known by its own addresses, however they are written', () => {
  for (const own of ['127.0.0.1', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1', '::ffff:7f00:1'])
    expect(isLoopbackNetwork(networkOf(own))).toBe(true)
  for (const other of ['192.0.2.1', '::', '::2', '2001:db8::1', '']) expect(isLoopbackNetwork(networkOf(other))).toBe(false)
})

it('what is no address is a network of its own', () => {
  for (const text of ['', 'unix', '1:2', 'x::y', '1::2::3', ':::', '1:2:3:4:5:6:7:8:9']) expect(networkOf(text)).toBe(text)
})
