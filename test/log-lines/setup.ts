/**
 * Runs before each test file: what our logs write on standard error is kept instead of printed. A test that fails shows it; one that makes
 * a log tell an error that nobody declared (`expectLog`) fails by that.
 */
import { afterAll, afterEach, beforeEach } from 'vitest'
import { logLines } from './lines.ts'

const print = console.error
console.error = (...said: unknown[]): void => {
  if (!logLines.take(said[0])) print(...said)
}
logLines.beginFile()

beforeEach(() => logLines.beginTest())
afterEach(({ task }) => check(task.result?.state === 'fail'))
afterAll(() => {
  console.error = print
  check(false)
})

function check(failed: boolean): void {
  const { all, undeclared } = logLines.end()
  if (failed) for (const { text } of all) print(text)
  else if (undeclared.length > 0)
    throw new Error(
      `The log tells errors that no expectLog (test/log-lines/lines.ts) declares:\n${undeclared.map(({ text }) => text).join('\n')}`,
    )
}
