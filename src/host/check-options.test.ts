import { expect, it } from 'vitest'
import { createServer } from '../server/index.ts'
import { createHost } from './create.ts'

it.each([
  [{ sevrers: {} }, /createHost has no option "sevrers"\. There are .*Did you mean servers\?/],
  [{ model: 'gpt-4' }, /model is "gpt-4"; give anthropic\(\{ model: 'gpt-4' \}\), openai/],
  [{ servers: { shop: { target: undefined } } }, /Server "shop" has nothing to connect to: give a URL, .*\{ target/],
  [{ servers: { shop: { uri: 'http://127.0.0.1:9' } } }, /Server "shop" has nothing to connect to/],
  [{ servers: { shop: null } }, /Server "shop" has nothing to connect to/],
])('createHost refuses %j', async (options, message) => {
  await expect(createHost(options as never)).rejects.toThrow(message)
})

it('takes a server as config files name it', async () => {
  const server = createServer({ name: 'shop', version: '1.0.0' })
  const { url, close } = await server.listen()
  await using host = await createHost({ servers: { shop: { url } } })
  await host.open()
  expect(host.servers.map(({ status }) => status)).toEqual(['up'])
  await host.close()
  await close()
})
