import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Guard } from './endpoint.ts'

const request = (...rawHeaders: string[]) => {
  const headers: Record<string, string> = {}
  for (let at = 0; at < rawHeaders.length; at += 2) headers[rawHeaders[at]?.toLowerCase() ?? ''] ??= rawHeaders[at + 1] ?? ''
  return { headers, rawHeaders }
}

describe('the Host check', () => {
  it.each(['localhost', 'localhost:3000', 'LOCALHOST:80', '127.0.0.1:7420', '[::1]', '[::1]:9'])(
    'lets %s through by default',
    host => {
      expect(new Guard().check(host, undefined)).toBeUndefined()
    },
  )

  it.each([
    'evil.example.com',
    'localhost.evil.com',
    '127.0.0.1.evil.com:80',
    'evil.com#localhost',
    'user@localhost',
    'localhost:80:80',
    'localhost:x',
    'http://localhost',
    ' localhost',
    'localhost/',
    '[::1',
    '0.0.0.0:3000',
    '[::1].evil.com',
  ])('refuses %s with 403 and names the option that would allow it', host => {
    const refusal = new Guard().check(host, undefined)
    expect(refusal).toMatchObject({ status: 403, message: expect.stringContaining('option hosts') })
  })

  it('refuses a request without Host, and one with two, with 400 (RFC 9112 §3.2)', () => {
    const guard = new Guard()
    expect(guard.checkRequest(request())).toMatchObject({ status: 400, message: expect.stringContaining('no Host') })
    expect(guard.checkRequest(request('Host', 'localhost', 'hOsT', 'evil.com'))).toMatchObject({ status: 400 })
    expect(guard.check('localhost, evil.com', undefined)).toMatchObject({ status: 400 })
    expect(guard.checkRequest(request('Host', 'localhost'))).toBeUndefined()
  })

  it('answers to listed names with any port, or with exactly the listed one', () => {
    const guard = new Guard({ hosts: ['api.example.com', 'Other.example.com:8443'] })
    expect(guard.check('api.example.com:99', undefined)).toBeUndefined()
    expect(guard.check('other.example.com:8443', undefined)).toBeUndefined()
    expect(guard.check('other.example.com:8444', undefined)).toMatchObject({ status: 403 })
    expect(guard.check('localhost', undefined)).toBeUndefined()
  })

  it('answers to the address it is bound to, but a wildcard address is nobody', () => {
    expect(new Guard({ host: '192.0.2.7' }).check('192.0.2.7:80', undefined)).toBeUndefined()
    expect(new Guard({ host: '2001:db8::1' }).check('[2001:db8::1]:80', undefined)).toBeUndefined()
    expect(new Guard({ host: '0.0.0.0' }).check('0.0.0.0:80', undefined)).toMatchObject({ status: 403 })
  })

  it('judges each host by itself, also after one that was good', () => {
    const guard = new Guard()
    expect(guard.check('localhost:1', undefined)).toBeUndefined()
    expect(guard.check('evil.com', undefined)).toMatchObject({ status: 403 })
    expect(guard.check('evil.com', undefined)).toMatchObject({ status: 403 })
  })

  it('lets nothing through but a loopback name with an optional port, whatever the text', () => {
    const guard = new Guard()
    const near = fc.stringMatching(/^[a-z0-9.:@/[\]-]{0,12}$/).map(text => `localhost${text}`)
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.webAuthority(), near), host => {
        const good = /^(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/i.test(host)
        expect(guard.check(host, undefined) === undefined).toBe(good)
      }),
    )
  })

  it('repeats at most 80 characters of a foreign name, without control characters', () => {
    const message = new Guard().check(`evil\u001b[31m${'x'.repeat(5_000)}`, undefined)?.message ?? ''
    expect(message.length).toBeLessThan(300)
    expect(message).not.toContain('\u001b')
  })
})

it('a star opens a check in so many words, and only that one', () => {
  const anyHost = new Guard({ hosts: ['*'] })
  expect(anyHost.check('evil.com', undefined)).toBeUndefined()
  expect(anyHost.check('evil.com', 'https://evil.com')).toMatchObject({ status: 403 })
  expect(anyHost.check(undefined, undefined)).toMatchObject({ status: 400 })
  const anyOrigin = new Guard({ origins: ['*'] })
  expect(anyOrigin.check('localhost', 'https://evil.com')).toBeUndefined()
  expect(anyOrigin.check('evil.com', undefined)).toMatchObject({ status: 403 })
})

describe('the Origin check', () => {
  it.each(['http://localhost:6274', 'https://127.0.0.1', 'http://[::1]:1'])('lets the loopback origin %s through', origin => {
    expect(new Guard().check('localhost', origin)).toBeUndefined()
  })

  it.each([
    'https://evil.com',
    'null',
    'http://localhost.evil.com',
    'http://localhost:1/path',
    'file://',
    'http://localhost:1, http://evil.com',
  ])('refuses %s with 403 and names the option (rev D §1.2)', origin => {
    expect(new Guard().check('localhost', origin)).toMatchObject({
      status: 403,
      message: expect.stringContaining('option origins'),
    })
  })

  it('lets listed origins through, whatever their case or a slash at the end of the listing', () => {
    const guard = new Guard({ origins: ['https://App.example.com/', 'vscode-webview://abc'] })
    expect(guard.check('localhost', 'https://app.example.com')).toBeUndefined()
    expect(guard.check('localhost', 'vscode-webview://abc')).toBeUndefined()
    expect(guard.check('localhost', 'https://app.example.com:8443')).toMatchObject({ status: 403 })
    expect(guard.lists('https://app.example.com')).toBe(true)
    expect(guard.lists('http://localhost')).toBe(false)
  })
})
