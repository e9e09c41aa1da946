import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { outboundFor } from './outbound.ts'

async function decoy(): Promise<{ url: string; hits: () => number }> {
  let hits = 0
  const server = createServer((_request, response) => {
    hits++
    response.end('{}')
  }).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, hits: () => hits }
}

it('a server elsewhere cannot have this machine asked (H8)', async () => {
  const { url, hits } = await decoy()
  const outbound = outboundFor(new URL('https://mcp.example/mcp'))
  for (const address of [url, url.replace('127.0.0.1', 'localhost'), url.replace('127.0.0.1', '127.1')])
    await expect(outbound(address)).rejects.toMatchObject({ name: 'OutboundError', kind: 'refused' })
  expect(hits()).toBe(0)
})

it('a server on this machine can', async () => {
  const { url, hits } = await decoy()
  expect(await (await outboundFor(new URL('http://localhost:1/mcp'))(url)).text()).toBe('{}')
  expect(hits()).toBe(1)
})
