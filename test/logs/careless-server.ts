/** A server on stdio whose author lets secrets into every message. Its environment holds them. */
import { createServer } from '../../src/server/index.ts'

const opaque = process.env['UPSTREAM_TOKEN'] ?? ''
const server = createServer({ name: 'careless', version: '1.0.0', secret: process.env['VIVARIUM_SECRET'] })

server.tool('known', {}, () => {
  throw new Error(`Upstream refused ${opaque} (url-encoded ${encodeURIComponent(opaque)})`)
})
server.tool('request', {}, () => {
  const cause = Object.assign(new Error(`GET https://u:${opaque}@a.example/?access_token=${opaque}`), { config: process.env })
  throw new Error(`401 for Authorization: Bearer ${opaque}\n\u001b[31mforged line`, { cause })
})
server.tool('thrown', {}, () => Promise.reject({ token: opaque, env: process.env }))
server.resource('x://a', { name: 'a' }, () => {
  throw new Error(`Cannot read with ${opaque}`)
})
server.prompt('p', { description: 'p' }, () => {
  throw new Error(`password=${opaque}`)
})
await server.stdio()
