import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isSecretName, redact, redacted, secretValues } from './redact.ts'

const hush = 'hUsh-4711.x_y~z'

/** Where secrets stand in what gets written. */
const places: readonly ((secret: string) => string)[] = [
  s => `Authorization: Bearer ${s}`,
  s => `authorization: Basic ${s}\nnext: line`,
  s => `proxy-authorization=${s}`,
  s => `sent Bearer ${s}, got 401`,
  s => `{"authorization":"DPoP ${s}"}`,
  s => `Cookie: a=b; sid=${s}; c=d`,
  s => `set-cookie: sid=${s}; HttpOnly`,
  s => `Mcp-Session-Id: ${s}`,
  s => `GET https://a.example/cb?code=${s}&state=${s}#frag`,
  s => `https://a.example/#access_token=${s}&token_type=Bearer`,
  s => `grant_type=authorization_code&code=${s}&code_verifier=${s}`,
  s => `{"access_token":"${s}","refresh_token": "${s}","expires_in":3600}`,
  s => JSON.stringify(JSON.stringify({ client_secret: s })),
  s => `{ password: '${s}' }`,
  s => `password: ${s}`,
  s => `API_KEY=${s}`,
  s => `export GITHUB_TOKEN=${s} && run`,
  s => `client_assertion=${s}`,
  s => `https://user:${s}@a.example/`,
  s => `postgres://app:${s}@db.example/x`,
  s => `-----BEGIN EC PRIVATE KEY-----\n${s.replaceAll('-', '')}4711\n-----END EC PRIVATE KEY-----`,
]

describe('redaction', () => {
  it.each(places.map(place => [place('…'), place] as const))('finds the secret in %s', (_, place) => {
    expect(redact(place(hush))).not.toContain('4711')
  })

  it('finds any secret of plain characters in every place, and twice is once', () => {
    const secret = fc
      .stringMatching(/^[A-Za-z0-9._~+/=-]{12,60}$/)
      .filter(text => /\d/.test(text) && /[A-Z]/.test(text) && /[a-z]/.test(text))
    fc.assert(
      fc.property(secret, fc.constantFrom(...places.filter(place => !/:\/\/|PRIVATE/.test(place('')))), (text, place) => {
        const out = redact(`before ${place(text)} after`)
        expect(out).not.toContain(text)
        expect(redact(out)).toBe(out)
      }),
    )
  })

  it('finds tokens by their looks', () => {
    const jwt = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl'
    const looks = [
      jwt,
      jwt.slice(0, 30),
      `sk-ant-api03-${'a1'.repeat(12)}`,
      `ghp_${'a1'.repeat(18)}`,
      'AKIAABCDEFGHIJKLMNOP',
      'xoxb-1234567890-abc',
    ]
    for (const token of looks) expect(redact(`it said ${token} and more`)).toBe(`it said ${redacted} and more`)
  })

  it('takes known values out wherever they stand, encoded in a URL too', () => {
    const known = ['s3cr3t value', 's3cr3t value and more', 'no']
    expect(redact('x s3cr3t value and more y s3cr3t value, s3cr3t%20value, no', known)).toBe(
      `x ${redacted} y ${redacted}, ${redacted}, no`,
    )
  })

  it('leaves honest text alone', () => {
    const honest = [
      'A Bearer token is needed: send Authorization with each request',
      'Bearer realm="mcp", error="invalid_token", scope="read"',
      'exit code=1, state=open, code=ECONNRESET, error code: 404',
      'password: Required',
      'The token endpoint is https://a.example/token?x=1',
      'maxTokens: 100, progressToken=7',
      'TypeError: Cannot read properties of undefined (reading "x")\n    at f (file:///a/b.ts:1:2)',
    ]
    for (const text of honest) expect(redact(text)).toBe(text)
  })

  it('never throws, is idempotent and keeps out what is known, whatever the text', () => {
    const piece = fc.oneof(
      fc.uint16Array({ maxLength: 20 }).map(units => String.fromCharCode(...units)),
      fc.string({ maxLength: 20 }),
      fc.constantFrom(
        'Bearer ',
        'token=',
        'code=',
        '"secret":"',
        '\\"',
        'https://',
        '@',
        redacted,
        ': ',
        'Cookie: ',
        '-----BEGIN PRIVATE KEY-----',
        'eyJ',
      ),
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), pieces => {
        const out = redact(`${pieces.join('')}CANARY-0815${pieces.join('')}`, ['CANARY-0815'])
        expect(out).not.toContain('CANARY')
        expect(redact(out)).toBe(out)
      }),
      { numRuns: 1_000 },
    )
  })

  it('knows names that hold secrets from those that do not', () => {
    for (const name of [
      'access_token',
      'refreshToken',
      'client_secret',
      'X-Api-Key',
      'PASSWORD',
      'mcp-session-id',
      'Set-Cookie',
      'AWS_SECRET_ACCESS_KEY',
    ])
      expect([name, isSecretName(name)]).toEqual([name, true])
    for (const name of ['progressToken', 'maxTokens', 'tokenEndpoint', 'code', 'name', 'key', 'sessions'])
      expect([name, isSecretName(name)]).toEqual([name, false])
  })

  it('gathers the secret values of an environment or of headers', () => {
    const env = {
      DB_PASSWORD: 'abc12345',
      HOME: '/root',
      SSH_AUTH_SOCK: '/tmp/agent',
      authorization: 'Bearer xyz98765',
      PLAIN: 'p',
    }
    expect(secretValues(env)).toEqual(['abc12345', 'xyz98765'])
    expect(secretValues({ PLAIN: 'p' }, true)).toEqual(['p'])
  })
})
