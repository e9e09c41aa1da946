/** The fixtures as a command, on standard input and output. Revisions may be named to speak only those; `trusted` is the other fixture. */
import type { RevisionId } from '../../src/server/index.ts'
import { createFixture } from './fixture.ts'
import { createTrusted } from './fixture-trusted.ts'

const words = process.argv.slice(2)
const named = words.filter(word => word !== 'trusted') as RevisionId[]
const create = words.includes('trusted') ? createTrusted : createFixture
await create(named.length === 0 ? {} : { revisions: named }).stdio()
