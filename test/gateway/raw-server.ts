/** A server over stdio in one small file that loads nothing, with the tool `work`: for tests in which programs start and end. */
export const rawServer = (work: string): string => `
import { writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
const tools = [{ name: 'work', inputSchema: { type: 'object' } }]
const serverInfo = { name: 'raw', version: '1.0.0' }
const answers = {
  initialize: () => ({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo }),
  ping: () => ({}),
  'tools/list': () => ({ tools }),
  'tools/call': () => ({ content: [{ type: 'text', text: (${work})() }] }),
}
createInterface({ input: process.stdin }).on('line', line => {
  const { id, method } = JSON.parse(line)
  if (id === undefined) return
  const result = answers[method]?.()
  const answer = result === undefined ? { error: { code: -32601, message: 'unknown' } } : { result }
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...answer }) + '\\n')
})
`
