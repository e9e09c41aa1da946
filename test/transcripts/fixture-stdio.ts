/** The fixtures as a command, on standard input and output. Revisions may be named to speak only those; `trusted` and `live` are other fixtures. */
import type { RevisionId } from '../../src/server/index.ts'
import { createLively } from '../live/fixture.ts'
import { createFixture } from './fixture.ts'
import { createTrusted } from './fixture-trusted.ts'

const words = process.argv.slice(2)
const named = words.filter(word => word !== 'trusted' && word !== 'live') as RevisionId[]
const create = words.includes('trusted') ? createTrusted : words.includes('live') ? createLively : createFixture
await create(named.length === 0 ? {} : { revisions: named }).stdio()
