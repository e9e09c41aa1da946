import { expect, test } from 'vitest'
import { same } from './entry.ts'

test('entries are the same where their data is, in whatever order its members stand', () => {
  const entry = { target: { command: 'node', args: ['a'] }, headers: { a: '1', b: '2' }, timeoutMs: 5 }
  expect(same(entry, { timeoutMs: 5, headers: { b: '2', a: '1' }, target: { args: ['a'], command: 'node' } })).toBe(true)
  expect(same(new URL('https://a.example/x'), new URL('https://a.example/x'))).toBe(true)
  expect(same(entry, { ...entry, timeoutMs: undefined })).toBe(false)
  expect(same(entry, { ...entry, extra: undefined })).toBe(false)
  expect(same({ a: ['x', 'y'] }, { a: ['y', 'x'] })).toBe(false)
})

test('functions, and objects that are more than data, are the same only as themselves', () => {
  const open = () => 'https://a.example'
  class Pipe {}
  const pipe = new Pipe()
  expect([same({ target: open }, { target: open }), same({ target: pipe }, { target: pipe })]).toEqual([true, true])
  expect([same(open, () => 'https://a.example'), same(pipe, new Pipe()), same(pipe, {})]).toEqual([false, false, false])
})
