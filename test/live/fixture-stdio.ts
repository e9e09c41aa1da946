/** The same in a process of its own, on its pipes. */
import { liveFixture, type Variant } from './fixture.ts'

const [variant, store] = process.argv.slice(2)
const server = liveFixture(variant as Variant, store === undefined ? {} : { store })
await server.stdio()
await server.close()
