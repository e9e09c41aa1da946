import { describe, expect, it } from 'vitest'
import { clientOf, gatewayBefore, upstreamOf } from '../../../test/gateway/world.ts'
import type { Client } from '../../client/index.ts'
import type { GatewayOptions } from '../gateway.ts'
import { checkTrust } from './check.ts'

async function before(options: GatewayOptions): Promise<Client> {
  const bank = upstreamOf()
  bank.server.resource('file:///{+path}', { name: 'files' }, ({ path }) => `file ${path}`)
  return clientOf(await gatewayBefore({ bank }, options))
}

async function listed(client: Client): Promise<readonly string[]> {
  const names: string[] = []
  for await (const { uri } of client.resources()) names.push(uri)
  for await (const { uriTemplate } of client.resourceTemplates()) names.push(uriTemplate)
  for await (const { name } of client.prompts()) names.push(name)
  return names
}

const all = ['note://1', 'file:///{+path}', 'greet']

describe('rules about resources and prompts', () => {
  it('hold where nothing else is said: what no rule allows is refused and in no list', async () => {
    const client = await before({ otherwise: 'deny', rules: [{ name: 'notes', resource: 'note://*', do: 'allow' }] })
    expect(await listed(client)).toEqual(['note://1'])
    expect((await client.readResource('note://1')).contents[0]).toMatchObject({ text: 'note of bank' })
    await expect(client.readResource('file:///etc/passwd')).rejects.toThrow('No rule allows file:///etc/passwd of bank')
    await expect(client.getPrompt('greet')).rejects.toThrow('No rule allows greet of bank')
  })

  it('refuse what they name, also by a detour, and nothing else', async () => {
    const client = await before({ rules: [{ name: 'no-etc', resource: 'file:///etc/*', do: 'deny' }] })
    expect(await listed(client)).toEqual(all)
    await expect(client.readResource('file:///etc/passwd')).rejects.toThrow('Rule no-etc denies')
    await expect(client.readResource('file:///data/../etc/passwd')).rejects.toThrow('Rule no-etc denies')
    expect((await client.readResource('file:///data/a')).contents[0]).toMatchObject({ text: 'file data/a' })
    expect((await client.getPrompt('greet')).messages).toHaveLength(1)
  })

  it('are meant too by a rule that names none of them, but not by one that asks', async () => {
    const shut = await before({ rules: [{ name: 'shut', upstream: 'bank', do: 'deny' }] })
    expect(await listed(shut)).toEqual([])
    await expect(shut.readResource('note://1')).rejects.toThrow('Rule shut denies')
    const asking = await before({ otherwise: 'ask', rules: [{ name: 'ask', upstream: 'bank', do: 'ask' }] })
    expect(await listed(asking)).toEqual(all)
    expect((await asking.getPrompt('greet')).messages).toHaveLength(1)
  })

  it('say nothing that only calls have', () => {
    const rule = { name: 'odd', resource: 'note://*' }
    for (const more of [{ do: 'ask' }, { do: 'deny', args: { a: 'b' } }, { dedupe: '30s' }])
      expect(() => checkTrust({ rules: [{ ...rule, ...more }] })).toThrow('a rule for a resource can only allow or deny')
  })
})

describe('a client that is given some tools of a server', () => {
  it('is not given its resources and prompts beside them, unless they are named', async () => {
    const some = await before({ clients: { local: { tools: 'bank/read' } } })
    expect(await listed(some)).toEqual([])
    await expect(some.readResource('note://1')).rejects.toThrow('There is no resource')
    await expect(some.getPrompt('greet')).rejects.toThrow('There is no prompt')
    const named = await before({ clients: { local: { tools: 'bank/read', resources: ['bank/*', '!bank/file:///etc/*'] } } })
    expect(await listed(named)).toEqual(['note://1', 'file:///{+path}'])
    await expect(named.readResource('file:///data/../etc/passwd')).rejects.toThrow('There is no resource')
    expect((await named.readResource('file:///data/a')).contents[0]).toMatchObject({ text: 'file data/a' })
  })
})
