import fc from 'fast-check'
import { expect, test } from 'vitest'
import { expand } from './entry.ts'

const around = { env: { KEY: 'secret', EMPTY: '', BACK: `\${KEY}` }, folder: '/project', home: '/home/ann' }

test.each([
  [`\${KEY}`, 'secret'],
  [`a-\${KEY}-b-\${env:KEY}`, 'a-secret-b-secret'],
  [`\${NONE:-fallback}`, 'fallback'],
  [`\${NONE:-}`, ''],
  [`\${EMPTY:-fallback}`, 'fallback'],
  [`\${EMPTY}`, ''],
  [`\${KEY:-fallback}`, 'secret'],
  [`\${workspaceFolder}/x`, '/project/x'],
  [`\${userHome}`, '/home/ann'],
  ['$KEY and {KEY}', '$KEY and {KEY}'],
  [`\${BACK}`, `\${KEY}`],
])('%s is expanded', (text, expanded) => {
  expect(expand(text, around)).toEqual({ text: expanded })
})

test.each([
  [`\${NONE}`, 'VARIABLE_MISSING'],
  [`\${env:NONE}`, 'VARIABLE_MISSING'],
  [`\${toString}`, 'VARIABLE_MISSING'],
  [`\${input:token}`, 'INPUT_UNSUPPORTED'],
  [`\${command:x.y}`, 'VARIABLE_UNKNOWN'],
  [`\${}`, 'VARIABLE_UNKNOWN'],
])('%s is refused with a fix', (text, code) => {
  expect(expand(text, around)).toMatchObject({ why: { code, fix: expect.stringMatching(/./) } })
})

test('whatever a text is, it is expanded or refused, and no refusal tells a value', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(`\${`, '}', 'KEY', 'NONE', ':-', 'env:', 'a', '$')).map(parts => parts.join('')),
      text => {
        const result = expand(text, around)
        if ('why' in result) expect(JSON.stringify(result.why)).not.toContain('secret')
      },
    ),
  )
})
