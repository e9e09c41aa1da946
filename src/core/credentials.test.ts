import { expect, test } from 'vitest'
import { challengeParameter, lacksScope } from './credentials.ts'

test('parameters of a challenge are read quoted or bare, whatever stands around them', () => {
  const challenge =
    'Bearer resource_metadata="https://a/b?scope=no", error="insufficient_scope", scope="read \\"all\\" write", realm=x'
  expect(['scope', 'error', 'realm', 'error_description'].map(name => challengeParameter(challenge, name))).toEqual([
    'read "all" write',
    'insufficient_scope',
    'x',
    undefined,
  ])
  expect([challengeParameter(undefined, 'scope'), challengeParameter('Bearer scope=""', 'scope')]).toEqual([undefined, undefined])
})

test('a scope is lacking only where a 403 says so', () => {
  const challenge = 'Bearer error="insufficient_scope"'
  expect([lacksScope(403, challenge), lacksScope(401, challenge), lacksScope(403, 'Bearer'), lacksScope(403, null)]).toEqual([
    true,
    false,
    false,
    false,
  ])
})
