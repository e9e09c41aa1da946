import { expect, test } from 'vitest'
import { quoted, why, whyText } from './suggestion.ts'

test('a why reads as one line: what happened, its code, the rule that fired and the fix', () => {
  const said = why('SET_DISABLED', 'policy.enable', 'The feature set "memory" is off', 'Enable memory for the server')
  expect(whyText(said)).toBe('The feature set "memory" is off (SET_DISABLED, rule policy.enable). Enable memory for the server')
})

test('a name that a peer chose stays short and on one line', () => {
  const told = quoted(`a\nb${'x'.repeat(500)}`)
  expect(told).not.toContain('\n')
  expect(told.length).toBeLessThan(100)
})
