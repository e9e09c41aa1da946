/** Runs before each test file: from here on a frame that is not of its revision fails the test that made us emit it. */
import { afterAll, afterEach } from 'vitest'
import { watchEngines } from './hook.ts'
import { oracle } from './index.ts'

if (oracle !== undefined) {
  watchEngines(oracle)
  afterEach(check)
  afterAll(check)
}

function check(): void {
  const found = oracle?.take() ?? []
  if (found.length > 0) throw new Error(`Frames that their revision's official schema does not allow:\n${found.join('\n')}`)
}
