import { expect, onTestFinished, test } from 'vitest'
import { connect } from '../../../client/index.ts'
import { createLog } from '../../../core/log.ts'
import { createServer } from '../../../server/index.ts'
import { memoryPair } from '../../../transports/memory.ts'

function desk() {
  const lines: string[] = []
  const server = createServer({
    name: 'desk',
    version: '1.0.0',
    log: createLog({ level: 'error', write: line => lines.push(line) }),
  })
  onTestFinished(() => server.close())
  return { server, lines }
}

test('a tool that is undone by a tool that does not exist is reported when the server begins to serve, with the nearest name', async () => {
  const { server, lines } = desk()
  server.tool('book', { undo: { tool: 'cancle' } }, () => 'booked')
  server.tool('cancel', {}, () => 'cancelled')
  expect(lines).toEqual([])
  await server.listen()
  expect(lines).toEqual([
    expect.stringMatching(
      /error undo-tool-missing .*The undo of tool \\?"book\\?" names the tool \\?"cancle\\?", .*Did you mean cancel\?/,
    ),
  ])
})

test('tools that are registered in any order before the server serves are fine, and so are pairs that are added later', async () => {
  const { server, lines } = desk()
  server.tool('book', { undo: { tool: 'cancel' } }, () => 'booked')
  server.tool('cancel', {}, () => 'cancelled')
  await server.listen()
  server.tool('rent', { undo: { tool: 'return' } }, () => 'rented')
  server.tool('return', {}, () => 'returned')
  await Promise.resolve()
  expect(lines).toEqual([])
  server.tool('lend', { undo: { tool: 'nothing' } }, () => 'lent')
  await expect.poll(() => lines.join()).toContain('names the tool')
})

test('a server without undo says how its tools become part of transactions', async () => {
  const { server } = desk()
  server.tool('book', {}, () => 'booked')
  const [here, there] = memoryPair()
  server.acceptor.accept(there)
  await using client = await connect(here)
  await expect(client.transaction()).rejects.toMatchObject({
    suggestion: expect.stringContaining('add undo: { tool: … } to a tool'),
  })
})
