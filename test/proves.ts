/**
 * What a test proves beyond its title. A title that names a statement claims it for the role whose room the file lies in
 * (`roleOf` in scripts/lib/proofs.ts); a test that shows what another role does as well says so where it has shown it:
 * `proves('E2-4', 'client')`. Counted when the test has passed.
 */
import { TestRunner } from 'vitest'
import type { Proof, Role } from '../scripts/lib/proofs.ts'

declare module 'vitest' {
  interface TaskMeta {
    proves?: Proof[]
  }
}

/** Of several statements with one role: call it for each. `carrier`: where the claim is about one. */
export function proves(id: string, role: Role, carrier?: string): void {
  const test = TestRunner.getCurrentTest()
  if (test === undefined) throw new Error(`proves('${id}', '${role}') is called within a test`)
  test.meta.proves = [...(test.meta.proves ?? []), { id, role, ...(carrier === undefined ? {} : { carrier }) }]
}
