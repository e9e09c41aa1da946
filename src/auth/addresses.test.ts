import { describe, expect, it } from 'vitest'
import { checkEndpoint, checkServer, isLoopbackUrl } from './addresses.ts'

const far = new URL('https://mcp.example/mcp')
const near = new URL('http://localhost:3000/mcp')

describe('an address that metadata names', () => {
  it.each(['https://as.example/token', 'https://as.example:8443/a?b=c', 'HTTPS://AS.example/x'])('may be %s', address => {
    expect(checkEndpoint(address, 'token endpoint', far).protocol).toBe('https:')
  })

  it.each([
    'http://as.example/token',
    'http://127.0.0.1/token',
    'http://localhost/token',
    'javascript:alert(1)',
    'java\nscript:alert(1)',
    ' \u0001javascript:alert(1)',
    'file:///etc/passwd',
    'data:,x',
    'ws://as.example',
    'https://user@as.example/',
    'https://as.example/#f',
    '/token',
    '-x',
    '$(id)',
    '',
    `https://as.example/${'x'.repeat(3000)}`,
    7,
    undefined,
    null,
  ])('may not be %j for a server elsewhere', address => {
    expect(() => checkEndpoint(address, 'token endpoint', far)).toThrow(/token endpoint/)
  })

  it('may be on this machine by http where the server is, in any of its spellings', () => {
    for (const address of ['http://localhost:1/x', 'http://127.0.0.1/x', 'http://127.1/x', 'http://[::1]/x', 'http://0x7f.1/x'])
      expect(isLoopbackUrl(checkEndpoint(address, 'x', near))).toBe(true)
    for (const address of ['http://localhost.evil.example/', 'http://127.0.0.1.evil.example/', 'http://10.0.0.1/'])
      expect(() => checkEndpoint(address, 'x', near)).toThrow()
  })
})

it('credentials go by https, or to this machine', () => {
  for (const good of [far, near, new URL('http://127.0.0.9:1/')]) expect(() => checkServer(good)).not.toThrow()
  expect(() => checkServer(new URL('http://mcp.example/'))).toThrow('https')
})
