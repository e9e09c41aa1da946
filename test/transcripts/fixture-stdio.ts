/** The fixture as a command, on standard input and output. Revisions may be named to speak only those. */
import type { RevisionId } from '../../src/server/index.ts'
import { createFixture } from './fixture.ts'

const named = process.argv.slice(2) as RevisionId[]
await createFixture(named.length === 0 ? {} : { revisions: named }).stdio()
