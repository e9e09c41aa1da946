import { expect, it } from 'vitest'
import { progressFromText, progressText } from './layer.ts'

it.each([
  [{ progress: 2, total: 3, message: 'step 2' }, '2/3 step 2'],
  [{ progress: 2.5, total: 10 }, '2.5/10'],
  [{ progress: 7, message: 'files' }, '7 files'],
  [{ progress: 7 }, '7'],
])('%j is written as %j, and read as it was', (step, text) => {
  expect(progressText(step)).toBe(text)
  expect(progressFromText(text)).toEqual(step)
})

it.each(['Baking', '2nd oven', '1/x of it', ''])('%j is only words', text => {
  expect(progressFromText(text)).toEqual({ message: text })
})
