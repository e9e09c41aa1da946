import { expect, test } from 'vitest'
import { connect } from '../client/index.ts'
import type { Connection } from '../jsonrpc/connection.ts'
import { recordTranscript } from '../recording/transcript.ts'
import { createServer, type Server } from '../server/index.ts'
import { memoryPair } from '../transports/memory.ts'
import { connectInMemory } from './connect.ts'
import { playTranscript } from './play.ts'

function twice(): Server {
  const server = createServer({ name: 'twice', version: '1.0.0' })
  server.tool('again', { description: 'Says it again' }, (_, ctx) => {
    ctx.progress(1)
    return 'again'
  })
  return server
}

function connectionTo(server: Server): Connection {
  const [near, far] = memoryPair()
  server.acceptor.accept(far)
  return near
}

const hello = `-> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{
     "protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"player","version":"1"}}}
<- {"jsonrpc":"2.0","id":1,"result":"<object>"}
-> {"jsonrpc":"2.0","method":"notifications/initialized"}
`
const call = '-> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"again","_meta":{"progressToken":"t"}}}\n'
const progress = '<- {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}\n'
const result = '<- {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"again"}]}}\n'

test('a transcript plays when the server says what is written', () =>
  playTranscript(hello + call + progress + result, connectionTo(twice())))

test('another answer, another order and one frame too many are told', async () => {
  const wrong = hello + call + progress + result.replace('again', 'never')
  await expect(playTranscript(wrong, connectionTo(twice()))).rejects.toThrow(/Line 7.*never.*again/s)
  await expect(playTranscript(hello + call + result + progress, connectionTo(twice()))).rejects.toThrow(/Line 6/)
  await expect(playTranscript(hello + call + progress, connectionTo(twice()))).rejects.toThrow(/more came.*again/)
})

test('an order is not asked for where streams overtake each other', () =>
  playTranscript(hello + call + result + progress, connectionTo(twice()), { ordered: false }))

test('what never comes is not waited for beyond the deadline', async () => {
  const more = `${hello}<- {"jsonrpc":"2.0","method":"nothing"}\n`
  await expect(playTranscript(more, connectionTo(twice()), { timeoutMs: 20 })).rejects.toThrow(/got {2}nothing/)
})

test('what was recorded of a client plays against the same server', async () => {
  const recording = recordTranscript(connectionTo(twice()))
  const mcp = await connect(recording.connection, { revisions: ['2025-03-26'] })
  await mcp.callTool('again')
  await mcp.close()
  expect(recording.text()).toMatch(/^-> .*initialize/)
  await playTranscript(recording.text(), connectionTo(twice()))
})

test('an in-memory client speaks the wire it was told to, and its frames can be overheard', async () => {
  const frames: string[] = []
  await using mcp = await connectInMemory(twice(), {
    revision: '2024-11-05',
    onFrame: ({ way, text }) => frames.push(`${way} ${text}`),
  })
  expect(mcp.revision).toBe('2024-11-05')
  expect((await mcp.callTool('again')).text).toBe('again')
  expect(frames[0]).toMatch(/^out .*"protocolVersion":"2024-11-05"/)
  expect(frames.at(-1)).toMatch(/^in .*"again"/)
})
