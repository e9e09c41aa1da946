import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { shellWord } from '../../core/suggestion.ts'
import { shellWords } from '../target.ts'
import { listCommand } from './text.ts'

test('words that a shell would read otherwise stand in quotes, and others as they are', () => {
  expect(shellWords(['node', '-e', 'setInterval(()=>{},1e3)', "it's", ''])).toBe(
    `node -e 'setInterval(()=>{},1e3)' 'it'\\''s' ''`,
  )
  expect(shellWords(['~', '~/notes', 'a=b', '=ls'])).toBe(`'~' '~/notes' a=b '=ls'`)
})

test('a shell reads a word back as it was', () => {
  const word = fc.string({ unit: 'grapheme-ascii' })
  fc.assert(
    fc.property(word, text => execFileSync('/bin/sh', ['-c', `printf %s ${shellWord(text)}`], { encoding: 'utf8' }) === text),
    { numRuns: 20 },
  )
})

test('a program stands last in a command', () => {
  expect(listCommand('server.ts', 'tools')).toBe('vivarium list server.ts tools')
  expect(listCommand('-- node x.js', 'tools')).toBe('vivarium list tools -- node x.js')
})
