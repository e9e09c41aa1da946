/** A server of one tool, `NAME_echo`, on the port given: `one-tool.mjs NAME PORT`. */
import { createServer } from 'vivarium/server'
import { announce } from './ready.mjs'
import { echo, echoSchema } from './tools.mjs'

const [name, port] = process.argv.slice(2)
const server = createServer({ name, version: '1.0.0' })
server.tool(`${name}_echo`, { input: echoSchema, annotations: { readOnlyHint: true } }, async args => echo(args))
const { url } = await server.listen({ port: Number(port), host: '127.0.0.1' })
announce(Number(new URL(url).port))
