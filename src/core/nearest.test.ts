import { expect, test } from 'vitest'
import { nearest } from './suggestion.ts'

test('a letter too few, too many, changed or swapped still finds the word', () => {
  for (const typed of ['ad_note', 'add_notee', 'add_nota', 'add_ntoe', 'ADD_NOTE'])
    expect(nearest(typed, ['find', 'add_note'])).toEqual(['add_note'])
})

test('what is far away is not guessed, and a part of a name finds it', () => {
  expect(nearest('completely', ['add_note'])).toEqual([])
  expect(nearest('note', ['add_note', 'zzz'])).toEqual(['add_note'])
})
