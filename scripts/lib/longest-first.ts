/**
 * The order of test files. The long ones come first, so that no worker is left with one of them at the end; a machine that has
 * never run them cannot know, and goes by their size.
 */
import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { root } from './files.ts'

/** The longest ones, each of them long enough to matter at the end. */
const LONG = [
  'test/conformance/third-party.test.ts',
  'test/conformance/clients.test.ts',
  'test/conformance/reference.test.ts',
  'test/conformance/reference-websocket.test.ts',
  'test/conformance/reference-stdio.test.ts',
  'test/conformance/everything.test.ts',
  'test/transcripts/transcripts.test.ts',
  'src/cli/commands/verbs.test.ts',
  'test/conformance/unruly.test.ts',
  'test/conformance/mutations/without.test.ts',
  'test/conformance/mutations/mutations.test.ts',
  'test/conformance/mutations/callers.test.ts',
  'src/cli/commands/doctor.test.ts',
  'test/replicas.test.ts',
  'src/cli/commands/up.test.ts',
  'test/live/acts.test.ts',
  'test/gateway/matrix.test.ts',
  'test/live/sets.test.ts',
  'test/hostile/listeners.test.ts',
  'test/shared-streams.test.ts',
  'src/cli/commands/gateway.test.ts',
  'test/reliability/transactions.test.ts',
  'test/reliability/transaction-processes.test.ts',
  'src/features/reliability/events/events.test.ts',
  'src/features/reliability/permissions/grant-ends.test.ts',
  'src/features/reliability/streaming/http.test.ts',
]

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((a, b) => Number(isShared(a)) - Number(isShared(b)) || placeOf(a) - placeOf(b))
  }
}

/** Files that share a process come behind the others: one that needs its own between them would end the shared one. */
function isShared({ project }: TestSpecification): boolean {
  return !project.config.isolate
}

function placeOf({ moduleId }: TestSpecification): number {
  const place = LONG.indexOf(relative(root, moduleId).replaceAll('\\', '/'))
  return place < 0 ? LONG.length : place
}
