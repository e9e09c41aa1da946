/** Ours, from the built package (self-reference). The last argument picks the schema language: `zod` or `json`. */
import { createServer } from 'vivarium/server'
import { announce } from './ready.mjs'
import { echo, echoSchema, form20, form20Schema, listedDescription, listedNames, listedSchema } from './tools.mjs'

const [carrier, mode, , language] = process.argv.slice(2)

const server = createServer({
  name: 'bench',
  version: '1.0.0',
  // The default buckets stop a runaway caller long before 100,000 calls a second; all other limits stay on.
  limits: { rates: { calls: { perSecond: 1_000_000, burst: 1_000_000 } } },
})

// Zod is imported only where it is used, so that the JSON Schema contender shows the start-up cost of the library alone.
const inputs =
  language === 'json'
    ? { echoInput: echoSchema, form20Input: form20Schema, listedInput: listedSchema }
    : await import('./zod-tools.mjs')

if (mode === 'list') {
  for (const name of listedNames) {
    server.tool(name, { description: listedDescription(name), input: inputs.listedInput }, async () => name)
  }
} else {
  server.tool('echo', { description: 'Echoes the text', input: inputs.echoInput }, async args => echo(args))
  const form = { description: 'Takes a form of 20 properties', input: inputs.form20Input }
  server.tool('form20', form, async args => form20(args))
}

if (carrier === 'stdio') {
  await server.stdio()
} else {
  const { url } = await server.listen({ port: 0, host: '127.0.0.1' })
  announce(Number(new URL(url).port))
}
