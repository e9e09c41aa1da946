/**
 * Three servers of three ages behind one gateway, used by an old client and a new one: names that collide, questions that travel
 * both ways, a server that goes and comes back. Checks that everything is as it should be.
 */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, connect } from 'vivarium/client'
import { createGateway } from 'vivarium/gateway'
import { bakery, library, museum } from './servers.ts'

const [bread, books, art] = await Promise.all([bakery().listen(), library().listen(), museum().listen()])
await using gateway = await createGateway({
  servers: { bakery: bread.url, library: books.url, museum: art.url },
  rules: [{ name: 'no-burning', tool: 'burn_*', do: 'deny' }],
})
await gateway.ready()
assert.deepEqual(
  gateway.upstreams().map(({ name, revision }) => [name, revision]),
  [
    ['bakery', '2024-11-05'],
    ['library', '2025-11-25'],
    ['museum', '2026-07-28'],
  ],
)

const { url } = await gateway.listen()
const onElicit = () => ({ action: 'accept' as const, content: { title: 'Emma' } })
await using modern = await connect(url, { revisions: ['2026-07-28'], onElicit })
await using older = await connect(url, { revisions: ['2025-03-26'] })

// A name that two servers have is nobody's alone. What a rule refuses always is not listed.
assert.deepEqual((await namesOf(modern)).sort(), ['bake', 'bakery_search', 'guide', 'lend', 'library_search', 'museum_search'])
assert.equal((await older.callTool('museum_search')).text, 'Three paintings')

// A server of 2025-11-25 asks in the middle of a call; a client of 2026-07-28 answers in its next request. One call, all the same.
assert.equal((await modern.callTool('lend')).text, 'Emma, lent once')
// A client that cannot be asked is told so.
const refused = await older.callTool('lend')
assert.equal(refused.isError, true)
assert.match(refused.text, /elicitation/)

// A rule of the gateway holds for a server that knows nothing of it.
const burnt = await modern.callTool('burn_book')
assert.equal(burnt.isError, true)
assert.match(burnt.text, /no-burning/)

// One server goes: its tools go, the others stay. It comes back, and so do they.
await bread.close()
assert.equal((await modern.callTool('bake')).isError, true)
await until(async () => !(await namesOf(modern)).includes('bake'))
assert.equal((await modern.callTool('museum_search')).text, 'Three paintings')
const again = await bakery().listen({ port: bread.port })
await until(async () => (await namesOf(modern)).includes('bake'))
assert.equal((await modern.callTool('bake')).text, 'Bread')

await Promise.all([modern.close(), older.close()])
await gateway.close()
await Promise.all([again, books, art].map(server => server.close()))
console.log('All checks of the gateway passed.')

async function namesOf(client: Client): Promise<string[]> {
  const names: string[] = []
  for await (const { name } of client.tools()) names.push(name)
  return names
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    if (await holds()) return
    await sleep(50)
  }
  assert.fail('The expected state was not reached within 10 s')
}
