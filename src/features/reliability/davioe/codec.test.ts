import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Params } from '../../../jsonrpc/message.ts'
import { metaOf, revisionById } from '../../../revisions/index.ts'
import { createServer } from '../../../server/index.ts'
import { connectInMemory } from '../../../testing/index.ts'
import { asTool, spoken, understood } from './client.ts'
import { bareMembers, takeBare } from './runtime.ts'

type BareExchange = Parameters<typeof takeBare>[0]

/** A call in the form of that implementation. */
const bareCall = (params: Params): Params => spoken('tools/call', params)?.params ?? {}

/** A call in the common form, as `_meta` says it. */
const said = fc.array(fc.tuple(fc.constantFrom(...bareMembers), fc.stringMatching(/^[a-z]{1,8}$/))).map(members => {
  const meta: Record<string, Record<string, string>> = {}
  for (const [[name, extension], value] of members) meta[extension] = { ...meta[extension], [name]: value }
  return meta
})

function exchangeOf(params: Params): BareExchange {
  const exchange: BareExchange = {
    params,
    peer: { revision: revisionById('2025-11-25'), capabilities: {}, info: undefined, logLevel: undefined },
    get meta(): Params | undefined {
      return metaOf(exchange.params)
    },
  }
  return exchange
}

it('what a client puts beside the arguments a server finds again where it belongs', () => {
  fc.assert(
    fc.property(said, meta => {
      const { _meta: _, ...bare } = bareCall({ name: 't', _meta: meta })
      const exchange = exchangeOf(bare)
      takeBare(exchange)
      expect(exchange.params['_meta'] ?? {}).toEqual(meta)
    }),
  )
})

it('said in every way at once it is still the same call', () => {
  fc.assert(
    fc.property(said, meta => {
      const exchange = exchangeOf(bareCall({ name: 't', _meta: meta }))
      takeBare(exchange)
      expect(exchange.params['_meta']).toMatchObject(meta)
    }),
  )
})

it('no answer, however strange, makes the codec fail', () => {
  const sent = { method: 'tools/call', params: { name: 't' } }
  const server = { name: 's', opened: true }
  const members = fc.constantFrom(
    ...['result', 'error', 'content', 'tools', 'capabilities', 'extensions', 'session_state', 'requires_confirmation'],
    ...['steps_compensated', 'input_schema', 'structuredContent', 'idempotency', '__proto__', 'constructor'],
  )
  const answer = fc.oneof(fc.jsonValue(), fc.dictionary(members, fc.oneof(fc.jsonValue(), fc.constant(true))))
  fc.assert(
    fc.property(answer, value => {
      for (const method of [...asTool.keys(), 'tools/call', 'tools/list', 'initialize'])
        understood({ ...sent, method }, { result: value }, server)
      understood({ ...sent, method: 'tools/list' }, { result: { tools: [value] } }, server)
    }),
  )
})

it('a member that is named like the prototype stays a member', () => {
  const sent = { method: 'tools/call', params: {} }
  const given = { result: JSON.parse('{"__proto__":{"result":1}}') }
  const { result } = understood(sent, given, { name: '', opened: true })
  expect(JSON.stringify((result as Params)['structuredContent'])).toBe('{"__proto__":{"result":1}}')
})

it('a server that answers in the common form is understood with the profile, too', async () => {
  const server = createServer({ name: 'plain', version: '1.0.0', log: 'silent' })
  server.tool('greet', { annotations: { readOnlyHint: true } }, () => ({ hello: 'Ada' }))
  const mcp = await connectInMemory(server, { profile: 'davioe' })
  expect((await mcp.callTool('greet')).structured).toEqual({ hello: 'Ada' })
  expect((await mcp.tools().next()).value).toMatchObject({ name: 'greet' })
  await mcp.close()
  await server.close()
})
