import { expect, it } from 'vitest'
import { createServer } from '../../src/server/index.ts'
import { connectInMemory } from '../../src/testing/index.ts'
import { expectLog, LogLines, logLines } from './lines.ts'

const error = '2026-11-17T22:54:04.813Z vivarium error tool-failed server=a tool=t error="Error: out of ink"\n    at t (a.ts:1:1)'

it('keeps lines of our logs, and leaves alone what others write', () => {
  const lines = new LogLines()
  expect([error, 'Error: out of ink', undefined, { level: 'error' }].map(each => lines.take(each))).toEqual([
    true,
    false,
    false,
    false,
  ])
  expect(lines.end().all).toEqual([{ level: 'error', event: 'tool-failed', text: error }])
  expect(lines.end().all).toEqual([])
})

it.each([
  ['of the same event', 'tool-failed', undefined, 0],
  ['of the same event and words', 'tool-failed', /out of ink/, 0],
  ['of other words', 'tool-failed', /out of paper/, 1],
  ['of another event', 'internal', undefined, 1],
])('an error is undeclared unless one %s is expected', (_, event, words, undeclared) => {
  const lines = new LogLines()
  lines.beginTest()
  lines.expect(event, words)
  lines.take(error)
  expect(lines.end().undeclared).toHaveLength(undeclared)
})

it('what is less than an error needs no declaration', () => {
  const lines = new LogLines()
  lines.take(error.replace(' error ', ' warn '))
  expect(lines.end()).toMatchObject({ all: [{ level: 'warn' }], undeclared: [] })
})

it('what a file expects holds for its tests, what a test expects for that one', () => {
  const lines = new LogLines()
  lines.beginFile()
  lines.expect('internal')
  lines.beginTest()
  lines.expect('tool-failed')
  lines.take(error)
  expect(lines.end().undeclared).toEqual([])
  lines.beginTest()
  lines.take(error)
  lines.take(error.replace('tool-failed', 'internal'))
  expect(lines.end().undeclared).toMatchObject([{ event: 'tool-failed' }])
  lines.beginFile()
  lines.take(error.replace('tool-failed', 'internal'))
  expect(lines.end().undeclared).toHaveLength(1)
})

it('what a server writes by its default log is kept here, and would fail this test if it were not declared', async () => {
  const server = createServer({ name: 'ink', version: '1.0.0' })
  server.tool('print', {}, () => {
    throw new Error('out of ink')
  })
  const client = await connectInMemory(server)
  await client.callTool('print')
  await client.close()
  await server.close()
  expect(logLines.end().undeclared).toMatchObject([{ event: 'tool-failed', text: expect.stringContaining('out of ink') }])
})

it('once it is declared, a line on standard error fails nothing', () => {
  expectLog('tool-failed', /out of ink/)
  console.error(error)
})
