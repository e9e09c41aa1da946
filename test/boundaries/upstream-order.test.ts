import { describe, expect, it } from 'vitest'
import type { Client } from '../../src/client/index.ts'
import type { Gateway } from '../../src/gateway/index.ts'
import { type RevisionId, reply } from '../../src/server/index.ts'
import { type Behind, behind, clientOf, gatewayOf } from './tenants.ts'

const wires: readonly RevisionId[] = ['2025-11-25', '2026-07-28']
const plain = { pins: 'off' } as const

/** Answers for all addresses of a template, and says who it is. */
function answering(name: string, template: string): Behind {
  const made = behind(name)
  made.server.resource(template, { name: `of ${name}` }, () => `from ${name}`)
  return made
}

async function read(client: Client, uri: string): Promise<string> {
  const [part] = (await client.readResource(uri)).contents
  return part !== undefined && 'text' in part ? String(part.text) : ''
}

/** Its connection breaks, and it comes back. */
async function again(gateway: Gateway, name: string, server: Behind): Promise<void> {
  const at = gateway.upstreams().findIndex(each => each.name === name)
  server.leave()
  await expect.poll(() => gateway.upstreams()[at]?.status).not.toBe('up')
  // What it had is hidden by now.
  await gateway.ready()
  server.comeBack()
  gateway.retry(name)
  await expect.poll(() => gateway.upstreams()[at]?.status).toBe('up')
  await gateway.ready()
}

const list = async (client: Client): Promise<string[]> => {
  const names: string[] = []
  for await (const { name } of client.tools()) names.push(name)
  return names.sort()
}

describe.each(wires)('of two servers whose templates fit one address the first of the file answers, at %s,', revision => {
  it('also after it was away', async () => {
    const [first, second] = [answering('first', 'pay://{id}'), answering('second', 'pay://{+rest}')]
    const gateway = await gatewayOf({ first, second }, plain)
    const client = await clientOf(gateway, { revision })
    expect(await read(client, 'pay://ada')).toBe('from first')
    await again(gateway, 'first', first)
    expect(await read(client, 'pay://ada')).toBe('from first')
    expect(await read(client, 'pay://ada/more')).toBe('from second')
  })

  it('and nobody while it is away', async () => {
    const [first, second] = [answering('first', 'pay://{id}'), answering('second', 'pay://{+rest}')]
    const gateway = await gatewayOf({ first, second }, plain)
    const client = await clientOf(gateway, { revision })
    await first.server.close()
    await expect.poll(() => gateway.upstreams()[0]?.status).not.toBe('up')
    await gateway.ready()
    await expect(read(client, 'pay://ada')).rejects.toThrow('The server "first"')
    expect(await read(client, 'pay://ada/more')).toBe('from second')
  })
})

it('a server that a reload puts between two answers before the one behind it', async () => {
  const [first, middle, last] = [
    answering('first', 'other://{id}'),
    answering('middle', 'pay://{id}'),
    answering('last', 'pay://{+rest}'),
  ]
  const gateway = await gatewayOf({ first, last }, plain)
  const client = await clientOf(gateway)
  expect(await read(client, 'pay://ada')).toBe('from last')
  const targets = { first: first.target, middle: middle.target, last: last.target }
  await gateway.reload({ log: 'silent', servers: targets, ...plain })
  await gateway.ready()
  expect(await read(client, 'pay://ada')).toBe('from middle')
})

it('a server takes no address of one before it by listing it', async () => {
  const [first, second] = [answering('first', 'pay://{id}'), behind('second')]
  second.server.resource('pay://ada', { name: 'not ada' }, () => 'from second')
  const gateway = await gatewayOf({ first, second }, plain)
  const client = await clientOf(gateway)
  expect(await read(client, 'pay://ada')).toBe('from first')
  expect(await read(client, 'second+pay://ada')).toBe('from second')
  await again(gateway, 'first', first)
  expect(await read(client, 'pay://ada')).toBe('from first')
})

it('a server takes no address of one before it by offering the same template, whatever it offers beside', async () => {
  const [first, second] = [answering('first', 'pay://{id}'), answering('second', 'pay://{+rest}')]
  const gateway = await gatewayOf({ first, second }, plain)
  const client = await clientOf(gateway)
  expect(await read(client, 'pay://ada')).toBe('from first')
  // Now the template is nobody's under its own address; what else the second one has must not get what it fits.
  second.server.resource('pay://{id}', { name: 'the same' }, () => 'from second')
  second.server.resource('pay://ada', { name: 'not ada' }, () => 'from second')
  await expect.poll(() => read(client, 'pay://ada').catch(String)).not.toBe('from first')
  for (const uri of ['pay://ada', 'pay://bob']) await expect(read(client, uri)).rejects.toThrow(/There is no resource/)
  expect(await read(client, 'first+pay://ada')).toBe('from first')
})

it('an address that two servers list is not answered by the template of a third, nor by that of one of them', async () => {
  const [first, second] = [behind('first'), answering('second', 'pay://{id}')]
  for (const [name, { server }] of Object.entries({ first, second }))
    server.resource('pay://ada', { name: 'ada' }, () => `${name} lists`)
  const gateway = await gatewayOf({ first, second }, plain)
  const client = await clientOf(gateway)
  await expect(read(client, 'pay://ada')).rejects.toThrow('There is no resource "pay://ada"')
  expect(await read(client, 'first+pay://ada')).toBe('first lists')
  expect(await read(client, 'pay://bob')).toBe('from second')
})

it('a link in a result leads to the server that gave it, also where one before it answers for the address', async () => {
  const [first, second] = [answering('first', 'pay://{id}'), answering('second', 'pay://{+rest}')]
  second.server.tool('link', {}, () => reply({ content: [{ type: 'resource_link', uri: 'pay://ada', name: 'ada' }] }))
  const gateway = await gatewayOf({ first, second }, plain)
  const client = await clientOf(gateway)
  const { content } = await client.callTool('link')
  const { uri } = content[0] as { uri: string }
  expect(uri).not.toBe('pay://ada')
  expect(await read(client, uri)).toBe('from second')
})

it('a server that comes back and cannot list its templates keeps its addresses', async () => {
  const [first, second] = [answering('first', 'pay://{id}'), answering('second', 'pay://{+rest}')]
  const gateway = await gatewayOf({ first, second }, plain)
  const client = await clientOf(gateway)
  first.server.engine.extend({
    layers: [
      {
        stage: 'enter',
        methods: ['resources/templates/list'],
        run: () => {
          throw new Error('not now')
        },
      },
    ],
  })
  await again(gateway, 'first', first)
  expect(await read(client, 'pay://ada')).toBe('from first')
})

it('what is watched is watched where its address leads now', async () => {
  const [first, second] = [answering('first', 'pay://{id}'), answering('second', 'pay://{+rest}')]
  const gateway = await gatewayOf({ second }, plain)
  const client = await clientOf(gateway)
  const seen: string[] = []
  void (async () => {
    for await (const uri of client.resourceUpdates('pay://ada')) seen.push(uri)
  })().catch(() => {})
  await expect
    .poll(() => {
      second.server.resourceUpdated('pay://ada')
      return seen.length
    })
    .toBeGreaterThan(0)
  const watched = new Set<string>()
  first.server.engine.onWatch.add((uri, is) => void (is ? watched.add(uri) : watched.delete(uri)))
  await gateway.reload({ log: 'silent', servers: { first: first.target, second: second.target }, ...plain })
  await gateway.ready()
  await expect.poll(() => [...watched]).toEqual(['pay://ada'])
})

describe('a short name', () => {
  const both = (): readonly [Behind, Behind] => {
    const made = [behind('first'), behind('second')] as const
    for (const [at, { server }] of made.entries()) {
      if (at === 0) server.tool('pay', {}, () => 'paid by first')
      if (at === 0) server.prompt('greet', {}, () => 'first greets')
      server.tool(`own${at}`, {}, () => 'own')
      server.prompt(`own${at}`, {}, () => 'own')
    }
    return made
  }

  it('that meant the tool of one server never means that of another, whoever drops it or comes back without it', async () => {
    const [first, second] = both()
    const gateway = await gatewayOf({ first, second }, plain)
    const client = await clientOf(gateway)
    expect((await client.callTool('pay')).text).toBe('paid by first')
    second.server.tool('pay', {}, () => 'paid by second')
    await expect.poll(() => list(client)).toContain('second_pay')
    // Who read the short name goes on with what it meant.
    expect((await client.callTool('pay')).text).toBe('paid by first')
    await again(gateway, 'first', first)
    expect((await client.callTool('pay')).text).toBe('paid by first')
    const bare = behind('first')
    bare.server.tool('own0', {}, () => 'own')
    await gateway.reload({ log: 'silent', servers: { first: bare.target, second: second.target }, ...plain })
    await gateway.ready()
    expect(await list(client)).toEqual(['own0', 'own1', 'second_pay'])
    await expect(client.callTool('pay')).rejects.toThrow('There is no tool "pay"')
  })

  it('is the other’s once its server is no longer in the file', async () => {
    const [first, second] = both()
    second.server.tool('pay', {}, () => 'paid by second')
    const gateway = await gatewayOf({ first, second }, plain)
    const client = await clientOf(gateway)
    expect(await list(client)).toContain('first_pay')
    await gateway.reload({ log: 'silent', servers: { second: second.target }, ...plain })
    expect((await client.callTool('pay')).text).toBe('paid by second')
  })

  it('of a prompt holds in the same way', async () => {
    const [first, second] = both()
    const gateway = await gatewayOf({ first, second }, plain)
    const client = await clientOf(gateway)
    const greeting = async (): Promise<string> => JSON.stringify((await client.getPrompt('greet')).messages)
    expect(await greeting()).toContain('first greets')
    second.server.prompt('greet', {}, () => 'second greets')
    await expect.poll(() => gateway.names().some(({ name }) => name === 'second_greet')).toBe(true)
    expect(await greeting()).toContain('first greets')
    await first.server.close()
    await expect.poll(() => gateway.upstreams()[0]?.status).not.toBe('up')
    await gateway.ready()
    await expect(greeting()).rejects.toThrow('The server "first"')
  })
})
