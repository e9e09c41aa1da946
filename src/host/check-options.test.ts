import { expect, it } from 'vitest'
import { createServer } from '../server/index.ts'
import { createHost } from './create.ts'

it.each([
  [{ sevrers: {} }, /createHost has no option "sevrers"\. The options are .*Did you mean servers\?/],
  [{ model: 'gpt-4' }, /model must be a model object \(got "gpt-4"\)\. Use anthropic\(\{ model: 'gpt-4' \}\), openai/],
  [{ servers: { shop: { target: undefined } } }, /Server "shop" has no target\. Use a URL, .*\{ target/],
  [{ servers: { shop: { uri: 'http://127.0.0.1:9' } } }, /Server "shop" has no target/],
  [{ servers: { shop: null } }, /Server "shop" has no target/],
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
