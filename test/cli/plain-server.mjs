// A server in a few lines, without any SDK: what it does wrong is said by its first argument.
import { createInterface } from 'node:readline'

const wrong = process.argv[2] ?? ''
if (wrong === 'noise') console.log('Server is starting…')
if (wrong === 'http') console.log('MCP server listening on port 8931')
const tools = {
  '': [{ name: 'ping', description: 'Answers', inputSchema: { type: 'object' } }],
  odd: [{ name: 'ping', description: null, inputSchema: { type: 'object' } }],
  schema: [{ name: 'bad', description: 'Bad', inputSchema: { type: 'string' } }],
  large: [
    {
      name: 'big',
      description: 'Has much to say',
      inputSchema: { type: 'object' },
      outputSchema: { type: 'object', properties: { text: { type: 'string', enum: ['x'.repeat(71_000)] } } },
    },
  ],
  names: [
    { name: 'x'.repeat(70), description: 'Long', inputSchema: { type: 'object' } },
    { name: 'two words', description: 'Odd', inputSchema: { type: 'object' } },
    { name: 'same', description: '', inputSchema: { type: 'object' } },
    { name: 'same', description: 'Twice', inputSchema: { type: 'object' } },
  ],
}
const revision = wrong === 'old' ? '2024-11-05' : '2025-06-18'
// Declares more than it knows, and its prompts lie in a database that is down.
const events = wrong.startsWith('events-') && { experimental: { 'dev.vivarium/events': {} } }
const prompts = wrong === 'refusing' && { prompts: {} }
const capabilities = wrong === 'half' ? { tools: {}, resources: {}, prompts: {} } : { tools: {}, ...prompts, ...events }
const answers = {
  initialize: () => ({ protocolVersion: revision, capabilities, serverInfo: { name: 'plain', version: '1' } }),
  'tools/list': () => ({ tools: tools[wrong] ?? tools[''] }),
  ping: () => ({}),
}
// What serves elsewhere does not end with its input.
if (wrong === 'http' || wrong === 'silent') setInterval(() => {}, 1000)
createInterface({ input: process.stdin }).on('line', line => {
  if (wrong === 'silent' || wrong === 'http') return
  const { id, method } = JSON.parse(line)
  if (id === undefined) return
  const answer = answers[method]
  const down = { half: 'prompts/list', 'events-down': 'event/list' }[wrong] === method
  const refused = wrong === 'refusing' && method === 'prompts/list' && { code: -32602, message: 'Not with this list' }
  if (refused) console.error('asked for a list')
  const unknown = refused || { code: -32601, message: 'Method not found' }
  const error = down ? { code: -32603, message: 'The database is down' } : unknown
  process.stdout.write(
    `${JSON.stringify({ jsonrpc: '2.0', id, ...(answer === undefined ? { error } : { result: answer() }) })}\n`,
  )
})
