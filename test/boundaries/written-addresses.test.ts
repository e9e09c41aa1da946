/** One resource has many spellings: a rule about it holds for each that its server would take for the same. */
import { describe, expect, it } from 'vitest'
import type { GatewayRule } from '../../src/policy/rules/call-policy.ts'
import { behind, clientOf, gatewayOf } from './tenants.ts'

/** `secret:{id}` and `payroll://{id}`, of which both read what is escaped. */
function files() {
  const made = behind('files')
  made.server.resource('secret:{id}', { name: 'secrets' }, ({ id }) => `secret of ${id}`)
  made.server.resource('payroll://{id}', { name: 'people' }, ({ id }) => `salary of ${id}`)
  return made
}

describe('a rule that refuses a resource', () => {
  it.each<[resource: string, asked: string]>([
    ['payroll://ada', 'payroll://%61da'],
    ['*ada', 'payroll://%61da'],
    ['*ada*', 'payroll://ad%61'],
    ['secret:ada', 'secret:%61da'],
    ['secret:*a', 'secret:ad%61'],
  ])('by %s refuses it as %s', async (resource, asked) => {
    const rule: GatewayRule = { name: 'no-ada', resource, do: 'deny' }
    const gateway = await gatewayOf({ files: files() }, { rules: [rule] })
    const client = await clientOf(gateway)
    expect(await client.readResource(asked.replace('%61', 'b'))).toMatchObject({ contents: [{ text: expect.any(String) }] })
    await expect(client.readResource(asked)).rejects.toThrow('no-ada')
  })
})

it('a rule that allows some of them allows what is so in every spelling', async () => {
  const rule: GatewayRule = { name: 'some', resource: 'secret:pub*', do: 'allow' }
  const client = await clientOf(await gatewayOf({ files: files() }, { rules: [rule], otherwise: 'deny' }))
  expect(await client.readResource('secret:public')).toMatchObject({ contents: [{ text: 'secret of public' }] })
  await expect(client.readResource('secret:pub%2F..%2Fada')).rejects.toThrow('No rule allows')
})

it.each(['!*ada', '!files/*ada', ['!*ada', '*']])(
  'a client that is given all but %s does not read it escaped',
  async resources => {
    const client = await clientOf(await gatewayOf({ files: files() }, { clients: { local: { resources } } }))
    expect(await client.readResource('payroll://%62ob')).toMatchObject({ contents: [{ text: 'salary of bob' }] })
    await expect(client.readResource('payroll://%61da')).rejects.toThrow('There is no resource')
  },
)
