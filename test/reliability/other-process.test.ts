import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { killProcess, writtenLines } from './other-process.ts'

test.each(['', ' ', '0', '1', '-1', '-0', '1.5', 'NaN', 'out of quota'])('%j is no process that a test may kill', told => {
  expect(() => killProcess(told)).toThrow('is not the id of a process')
})

test('a line that another process writes is read when it is whole', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'vivarium-lines-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'lines')
  const { lines, line } = writtenLines(file)
  expect(lines()).toEqual([])
  writeFileSync(file, '')
  expect(lines()).toEqual([])
  appendFileSync(file, '12')
  expect(lines()).toEqual([])
  const found = line(() => true)
  appendFileSync(file, '34\n')
  expect(await found).toBe('1234')
})
