/** The same in a process of its own, on its pipes. */
import { liveFixture } from './fixture.ts'

const [variant, store] = process.argv.slice(2)
const server = liveFixture(variant === 'blocking' ? 'blocking' : 'told', store === undefined ? {} : { store })
await server.stdio()
await server.close()
