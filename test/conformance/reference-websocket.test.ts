/** E12-4: the reference server over WebSocket, and as a server of the base protocol. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Started, startReference } from '../../examples/reference/start.ts'
import { judge, tableOf } from '../../src/conformance/index.ts'
import { expectWhole, patience } from './whole-reference.ts'

describe('the reference server', () => {
  let started: Started
  beforeAll(async () => {
    started = await startReference()
  })
  afterAll(() => started.server.close())

  it('E12-4: passes every scenario of the extensions and of MCP Live on websocket', patience, async () => {
    await expectWhole({ websocket: new URL('/ws', started.url.replace('http', 'ws')) })
  })

  it('E12-4: passes every scenario of the base protocol at every revision', patience, async () => {
    const report = await judge({ memory: started.server.acceptor }, { only: /^base\//, allowWrites: true })
    expect(report.summary, tableOf(report)).toMatchObject({ failed: 0, error: 0 })
    expect(report.summary.passed).toBeGreaterThan(700)
  })
})
