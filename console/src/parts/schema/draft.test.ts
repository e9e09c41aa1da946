import { describe, expect, it } from 'vitest'
import { draftOf, turned } from './draft.ts'
import { Typed } from './typed.ts'

describe('a draft of arguments', () => {
  it('shows what the form holds as JSON, also what is no value', () => {
    const json = turned(draftOf({ loaves: new Typed('3x', 'no number') }))
    expect(json).toMatchObject({ mode: 'json', text: '{\n  "loaves": 3x\n}' })
  })

  it('keeps the spaces of a text that means the same', () => {
    const text = '{"a":1,\n\n  "b":2}'
    const form = turned({ mode: 'json', value: { a: 1, b: 2 }, text })
    expect(form.mode).toBe('form')
    expect(turned(form).text).toBe(text)
    expect(turned({ ...form, value: { a: 1 } }).text).toBe('{\n  "a": 1\n}')
  })

  it('stays JSON while the text is none', () => {
    const draft = { mode: 'json', value: new Typed('{', 'no end'), text: '{' } as const
    expect(turned(draft)).toEqual(draft)
  })
})
