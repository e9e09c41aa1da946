/**
 * A gateway before the servers whose addresses are given, with rules and the audit log on: `gateway.mjs STORE NAME=URL…`. The rules
 * are about the tools that are called: one refuses by arguments, one by client. With `--console=FILE` it has a web console and writes
 * links to it into that file, a line each; with `--lines=N` its log gets N lines a second.
 */
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { createGateway } from 'vivarium/gateway'
import { announce } from './ready.mjs'

const { values, positionals } = parseArgs({
  options: { console: { type: 'string' }, lines: { type: 'string' } },
  allowPositionals: true,
})
const [store, ...words] = positionals
const servers = Object.fromEntries(words.map(word => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]))
// As the command does: see src/cli/commands/gateway.ts.
setFlagsFromString('--semi-space-growth-factor=1')
const given = {
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
}
const page = values.console === undefined ? undefined : await import('vivarium/console')
const { options, observer } = page?.observeGateway(given) ?? { options: given }
const gateway = await createGateway(options)
await gateway.ready()
setFlagsFromString('--semi-space-growth-factor=2')
const down = gateway.upstreams().filter(({ status }) => status !== 'up')
if (down.length > 0) throw new Error(`not up: ${down.map(({ name, why }) => `${name} ${why?.message}`).join(', ')}`)
if (page !== undefined) {
  const { newLink } = await page.serveConsole({ gateway, observer, port: 0 })
  writeFileSync(values.console, Array.from({ length: 12 }, () => newLink()).join('\n'))
}
if (values.lines !== undefined) {
  let line = 0
  let due = performance.now()
  setInterval(() => {
    for (; due < performance.now(); due += 1000 / Number(values.lines)) options.onStderr?.('bench', `line ${++line}`)
  }, 10)
}
const { url } = await gateway.listen({ port: 0, host: '127.0.0.1' })
announce(Number(new URL(url).port))
