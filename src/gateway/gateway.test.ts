import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { connect } from '../client/connect.ts'
import { createServer } from '../server/index.ts'
import { connectInMemory, memoryPair } from '../testing/index.ts'
import { createGateway } from './create.ts'
import type { GatewayOptions } from './gateway.ts'

function notes(answer: string) {
  const server = createServer({ name: answer, version: '1.0.0' })
  server.tool('search', { description: 'Searches', input: z.object({ q: z.string() }) }, ({ q }) => `${answer}: ${q}`)
  server.tool(`only_${answer}`, {}, () => answer)
  server.resource('note://today', { name: 'today' }, () => `today of ${answer}`)
  server.resource('note://by/{id}', { name: 'by' }, ({ id }) => `${id} of ${answer}`)
  server.prompt(
    'sum',
    { arguments: { of: { required: true, complete: value => [`${value}-${answer}`] } } },
    ({ of }) => `Sum ${of}`,
  )
  onTestFinished(() => server.close())
  const target = () => {
    const [here, there] = memoryPair()
    server.acceptor.accept(there)
    return here
  }
  return { server, target }
}

async function gatewayOf(options: GatewayOptions) {
  const gateway = await createGateway(options)
  onTestFinished(() => gateway.close())
  await gateway.ready()
  const client = await connectInMemory(gateway.server)
  onTestFinished(() => client.close())
  return { gateway, client }
}

test('tools, resources and prompts of two servers are there at one endpoint, prefixed only where they collide', async () => {
  const [a, b] = [notes('a'), notes('b')]
  const { client, gateway } = await gatewayOf({ servers: { left: a.target, right: b.target } })
  const names: string[] = []
  for await (const { name } of client.tools()) names.push(name)
  expect(names.sort()).toEqual(['left_search', 'only_a', 'only_b', 'right_search'])
  expect((await client.callTool('right_search', { q: 'x' })).text).toBe('b: x')
  expect((await client.callTool('only_a')).text).toBe('a')
  expect((await client.readResource('left+note://today')).contents).toMatchObject([
    { uri: 'left+note://today', text: 'today of a' },
  ])
  expect((await client.readResource('right+note://by/7')).contents[0]).toMatchObject({ text: '7 of b' })
  expect((await client.getPrompt('left_sum', { of: 'x' })).messages[0]?.content).toMatchObject({ text: 'Sum x' })
  expect(await client.complete({ prompt: 'right_sum' }, { name: 'of', value: 'v' })).toMatchObject({ values: ['v-b'] })
  expect(gateway.upstreams()).toMatchObject([
    { name: 'left', status: 'up', tools: 2, resources: 2, prompts: 1, left: [] },
    { name: 'right', status: 'up' },
  ])
})

test('what clients see is checked by its server alone, with its own schema', async () => {
  const { client } = await gatewayOf({ servers: { left: notes('a').target } })
  for await (const tool of client.tools())
    if (tool.name === 'search')
      expect(tool).toMatchObject({
        inputSchema: { properties: { q: { type: 'string' } } },
        _meta: { 'dev.vivarium/origin': { server: 'left', name: 'search' } },
      })
  expect((await client.callTool('search', { q: 7 })).isError).toBe(true)
})

test('over HTTP too', async () => {
  const { gateway } = await gatewayOf({ servers: { left: notes('a').target } })
  const { url } = await gateway.listen()
  await using client = await connect(url)
  expect((await client.callTool('search', { q: 'x' })).text).toBe('a: x')
})

test('an empty text is a prefix too: names never change under it, and never are those of others', async () => {
  const { client } = await gatewayOf({ names: 'prefixed', servers: { left: { target: notes('a').target, prefix: '' } } })
  for await (const { name } of client.tools()) expect(name).toMatch(/^[0-9a-f]{8}_(search|only_a)$/)
})

test('an entry that is nothing is told by its name', async () => {
  const servers = { left: null } as unknown as NonNullable<GatewayOptions['servers']>
  await expect(createGateway({ servers })).rejects.toThrow('Server "left" has no target')
})
