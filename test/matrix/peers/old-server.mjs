/** A small server of the age of handshakes. `exit`: it dies of a first message it does not know. `mute`: it says nothing to it. */
import { createInterface } from 'node:readline'

const [manner] = process.argv.slice(2)
let opened = false

const results = {
  initialize: () => ({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'old', version: '1' } }),
  'tools/list': () => ({ tools: [{ name: 'echo', inputSchema: { type: 'object' } }] }),
  'tools/call': ({ arguments: { text } }) => ({ content: [{ type: 'text', text }] }),
}

createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  if (!opened && method !== 'initialize') {
    if (manner === 'exit') process.exit(1)
    return
  }
  opened = true
  console.log(JSON.stringify({ jsonrpc: '2.0', id, result: results[method](params) }))
})
