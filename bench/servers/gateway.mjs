/**
 * A gateway before the servers whose addresses are given, with rules and the audit log on: `gateway.mjs STORE NAME=URL…`. The rules
 * are about the tools that are called: one refuses by arguments, one by client.
 */
import { setFlagsFromString } from 'node:v8'
import { createGateway } from 'vivarium/gateway'
import { announce } from './ready.mjs'

const [store, ...words] = process.argv.slice(2)
const servers = Object.fromEntries(words.map(word => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]))
// As the command does: see src/cli/commands/gateway.ts.
setFlagsFromString('--semi-space-growth-factor=1')
const gateway = await createGateway({
  servers,
  store,
  secret: 'a secret of the bench, of 32 characters and more',
  audit: true,
  pins: 'block',
  rules: [
    { name: 'no-secrets', tool: 'echo', args: { text: 'secret*' }, do: 'deny' },
    { name: 'no-strangers', tool: '*', client: 'unlisted', do: 'deny' },
  ],
  limits: { rates: { calls: { perSecond: 1_000_000, burst: 1_000_000 } } },
})
await gateway.ready()
setFlagsFromString('--semi-space-growth-factor=2')
const down = gateway.upstreams().filter(({ status }) => status !== 'up')
if (down.length > 0) throw new Error(`not up: ${down.map(({ name, why }) => `${name} ${why?.message}`).join(', ')}`)
const { url } = await gateway.listen({ port: 0, host: '127.0.0.1' })
announce(Number(new URL(url).port))
