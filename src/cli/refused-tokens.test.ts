/** What the command says of a token that a server does not take: the built command against a server with authorization. */
import { expect, onTestFinished, test } from 'vitest'
import { trial } from '../../test/cli/trial.ts'
import { createServer, oauth } from '../server/index.ts'

const longScopes = ['tickets:write', 'tickets:administrate-the-archive', 'tickets:read-what-others-wrote-in-confidence']

/** A server that knows one token, with the scope `tickets:read`. `everywhere`: what every request requires. */
async function tickets(everywhere: readonly string[] = []): Promise<string> {
  const server = createServer({ name: 'tickets', version: '1.0.0' })
  server.tool('close', { scopes: longScopes }, () => 'closed')
  const verify = async (token: string) => (token === 'valid' ? { subject: 'ada', scopes: ['tickets:read'] } : undefined)
  const resource = 'https://tickets.example/mcp'
  const auth = oauth({ issuer: 'https://login.example', resource, scopes: everywhere, verify })
  const { url, close } = await server.listen({ auth })
  onTestFinished(close)
  return String(url)
}

const env = { VALID: 'valid', EXPIRED: 'expired' }

test('a call whose token lacks scopes names all of them, asks for another token and not for a sign-in, and ends with 1', async () => {
  const { run } = await trial({})
  const { code, out, err } = await run(['call', await tickets(), 'close', '--bearer-env', 'VALID'], { env })
  expect([code, out]).toEqual([1, ''])
  const [why, fix] = err.split('\n')
  expect(why).toContain('The token lacks a scope (HTTP 403): This request requires the scopes')
  expect(why).toContain(longScopes.join(' '))
  expect(fix).toContain(`Get a token with the scopes tickets:read ${longScopes.join(' ')} from the authorization server`)
  expect(err).not.toMatch(/sign-in|sign in|…/)
})

test('a scope that every request requires is told so by all verbs', async () => {
  const { run } = await trial({})
  const url = await tickets(['tickets:administrator'])
  for (const verb of ['list', 'inspect', 'doctor']) {
    const { code, out, err } = await run([verb, url, '--bearer-env', 'VALID'], { env })
    expect([verb, code]).toEqual([verb, 1])
    expect(out + err).toMatch(
      /lacks a scope \(HTTP 403\)[\s\S]+→ Get a token with the scopes tickets:read tickets:administrator /,
    )
  }
})

test('a token that is not valid any more is told as such, with 3; the options of the library are not named', async () => {
  const { run } = await trial({})
  const url = await tickets()
  for (const args of [
    ['call', url, 'close'],
    ['list', url],
    ['inspect', url],
    ['doctor', url],
  ]) {
    const { code, out, err } = await run([...args, '--bearer-env', 'EXPIRED'], { env })
    expect([args[0], code]).toEqual([args[0], 3])
    expect(out + err).toMatch(
      /refuses the token[^\n]*The token is not valid: it is not known\n[^\n]*Get a new token and pass it with --bearer-env/,
    )
  }
  const bare = await run(['list', url, '--no-auth'])
  expect([bare.code, bare.err]).toEqual([3, expect.stringContaining('requires a sign-in')])
  expect(bare.err).not.toContain('option auth')
})
