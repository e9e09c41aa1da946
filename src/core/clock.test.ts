import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { realClock } from './clock.ts'

const clockModule = new URL('./clock.ts', import.meta.url).href

/** Runs a module that ends by itself, or is ended after ten seconds. */
function exitCode(source: string): number | null {
  return spawnSync(process.execPath, ['--input-type=module', '-e', source], { timeout: 10_000 }).status
}

it('a background timer does not keep the process alive', () => {
  const source = `import { realClock } from '${clockModule}'; realClock.setTimeout(() => process.exit(1), 60_000, true)`
  expect(exitCode(source)).toBe(0)
})

it('an ordinary timer keeps the process alive until it has fired', () => {
  const source = `import { realClock } from '${clockModule}'; realClock.setTimeout(() => process.exit(7), 1)`
  expect(exitCode(source)).toBe(7)
})

it('a cancelled timer never fires', async () => {
  const fired: string[] = []
  const cancel = realClock.setTimeout(() => fired.push('cancelled'), 1)
  cancel()
  await new Promise<void>(resolve => void realClock.setTimeout(resolve, 5))
  expect(fired).toEqual([])
})
