/** Names that were replaced by plainer ones still work. */
import { expect, onTestFinished, test } from 'vitest'
import { connect } from '../../src/client/index.ts'
import { placesOf } from '../../src/conformance/wire/connector.ts'
import { createHost, type HostOptions, scripted } from '../../src/host/index.ts'
import { loopLimits, loopLimitsOf } from '../../src/host/loop/limits.ts'
import { createServer } from '../../src/server/index.ts'
import { memoryPair } from '../../src/transports/memory.ts'

function shop() {
  const server = createServer({ name: 'shop', version: '1.0.0' })
  server.tool('buy', {}, () => 'Bought')
  onTestFinished(() => server.close())
  return server
}

test('server.door accepts connections as server.acceptor does', async () => {
  const server = shop()
  for (const acceptor of [server.door, server.acceptor]) {
    const [here, there] = memoryPair()
    acceptor.accept(there)
    await using mcp = await connect(here)
    expect((await mcp.callTool('buy')).text).toBe('Bought')
  }
})

test('the conformance kit takes { door } for a server in memory', () => {
  const { acceptor } = shop()
  expect(placesOf({ door: acceptor })).toEqual({ memory: acceptor })
  expect(placesOf({ acceptor })).toEqual({ memory: acceptor })
})

test('listen takes the limit keptPerSession, and still refuses unknown ones', async () => {
  const server = shop()
  const { close } = await server.listen({ limits: { keptPerSession: 2 } })
  await close()
  await expect(server.listen({ limits: { keptForever: 2 } as object })).rejects.toThrow('keptForever')
})

test('the limit keptLength of a host is storedLength, which wins if both are given', () => {
  expect(loopLimitsOf()).toEqual(loopLimits)
  expect(loopLimitsOf({ keptLength: 5 }).storedLength).toBe(5)
  expect(loopLimitsOf({ keptLength: 5, storedLength: 6 }).storedLength).toBe(6)
})

test.each([{ patience: 20 }, { approvalTimeout: 20 }])(
  'a question that nobody answers is refused in time with %j',
  async options => {
    const server = shop()
    const target = () => {
      const [here, there] = memoryPair()
      server.acceptor.accept(there)
      return here
    }
    const settings: HostOptions = {
      model: scripted([{ calls: [{ name: 'buy' }] }, 'Not bought']),
      servers: { shop: { target } },
      policy: { rules: [{ name: 'careful', do: 'ask', when: { tool: 'buy' } }] },
      onApproval: () => new Promise(() => {}),
      ...options,
    }
    const host = await createHost(settings)
    onTestFinished(() => host.close())
    const turn = await host.conversation('c').send('Buy')
    await turn.done
    expect(turn.calls.map(({ outcome }) => outcome?.status)).toEqual(['refused'])
  },
)
