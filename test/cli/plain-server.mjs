// A server in a few lines, without any SDK: what it does wrong is said by its first argument.
import { createInterface } from 'node:readline'

const wrong = process.argv[2] ?? ''
if (wrong === 'noise') console.log('Server is starting…')
const tools = {
  '': [{ name: 'ping', description: 'Answers', inputSchema: { type: 'object' } }],
  schema: [{ name: 'bad', description: 'Bad', inputSchema: { type: 'string' } }],
  names: [
    { name: 'x'.repeat(70), description: 'Long', inputSchema: { type: 'object' } },
    { name: 'two words', description: 'Odd', inputSchema: { type: 'object' } },
    { name: 'same', description: '', inputSchema: { type: 'object' } },
    { name: 'same', description: 'Twice', inputSchema: { type: 'object' } },
  ],
}
const revision = wrong === 'old' ? '2024-11-05' : '2025-06-18'
const answers = {
  initialize: () => ({ protocolVersion: revision, capabilities: { tools: {} }, serverInfo: { name: 'plain', version: '1' } }),
  'tools/list': () => ({ tools: tools[wrong] ?? tools[''] }),
  ping: () => ({}),
}
createInterface({ input: process.stdin }).on('line', line => {
  if (wrong === 'silent') return
  const { id, method } = JSON.parse(line)
  if (id === undefined) return
  const answer = answers[method]
  const error = { code: -32601, message: 'Method not found' }
  process.stdout.write(
    `${JSON.stringify({ jsonrpc: '2.0', id, ...(answer === undefined ? { error } : { result: answer() }) })}\n`,
  )
})
