import { expect, it } from 'vitest'
import { faultsIn } from './check.ts'

const token = 'a-token-of-the-ci-0123456789'
const said = (settings: object): readonly string[] =>
  faultsIn(settings).map(({ path, message }) => `${path.join('.')}: ${message}`)

it.each([
  [
    { auth: { tokens: { ci: token }, issuer: 'https://id.example.com' } },
    'auth: auth has both tokens and issuer, which cannot be combined',
  ],
  [{ auth: { tokens: { ci: token } }, clients: { ops: {} } }, 'auth.tokens.ci: The token is for a client that does not exist'],
  [
    { clients: { ops: {} }, rules: [{ name: 'a', client: 'opps', do: 'deny' }] },
    'rules.0.client: The client opps does not exist',
  ],
  [{ clients: { ops: { tools: ['bank/*', 'pay'] } } }, 'clients.ops.tools: pay does not name a server'],
])('what means nothing beside the rest is told: %j', (settings, fault) => {
  expect(said(settings)).toEqual([fault])
})

it('what is right is not told of', () => {
  const clients = { ci: { tools: ['bank/*', '!bank/pay'], resources: '*' }, ops: {} }
  const rules = [
    { name: 'a', client: ['ci', 'local', 'op*'], do: 'deny' },
    { name: 'b', client: 'anonymous', do: 'ask' },
  ]
  expect(said({ auth: { tokens: { ci: token } }, clients, rules })).toEqual([])
  expect(said({ rules: [{ name: 'a', client: 'whoever', do: 'deny' }] })).toEqual([])
})
