/** Hostile schemas of tools, and hostile values against innocent ones: a client reads both, and must not be frozen by either. */
import { type Attack, type Host, list, must, type Peer, toolNames } from './attack.ts'
import { httpPeer, json, said, tool, tools } from './http-peer.ts'

interface Bomb {
  /** Made by the server: the client's process must not pay for them. */
  readonly schema: () => object
  readonly value: () => unknown
  /** Whether the value is what the schema asks for; absent: either verdict will do, if it comes in time. */
  readonly fits?: boolean
}

/** A server whose tools promise one schema each, and give the value. */
function bombPeer(bombs: readonly Bomb[]): Promise<Peer> {
  return httpPeer({
    'tools/list': ({ answer }) =>
      answer(tools(...bombs.map(({ schema }, index) => tool(`t${index}`, { outputSchema: schema() })))),
    'tools/call': ({ params, answer }) =>
      answer(said('x', { structuredContent: bombs[Number(String(params['name']).slice(1))]?.value() })),
  })
}

function bombAttack(key: string, name: string, bombs: readonly Bomb[]): Attack {
  return {
    key,
    name,
    serve: () => bombPeer(bombs),
    async act(host) {
      const mcp = await host.connect()
      const names = await toolNames(mcp)
      let refused = 0
      for (const [index, { fits }] of bombs.entries()) {
        const call = mcp.callTool(`t${index}`)
        const verdict = await call.then(
          () => true,
          () => false,
        )
        if (!verdict) {
          await host.refused(call, 'invalid-result', 'protocol')
          refused++
        }
        must(fits === undefined || fits === verdict, `t${index} was ${verdict ? 'accepted' : 'refused'}`)
      }
      await host.fine(mcp)
      return `${names.length} tools, ${refused} results refused`
    },
  }
}

const doubling = (keyword: string) => ({
  $ref: '#/$defs/d0',
  $defs: {
    ...Object.fromEntries(list(60, level => [`d${level}`, { [keyword]: list(2, () => ({ $ref: `#/$defs/d${level + 1}` })) }])),
    d60: { type: 'null' },
  },
})

function nested(depth: number): object {
  let schema: object = {}
  for (let level = 0; level < depth; level++) schema = { type: 'object', properties: { a: schema } }
  return schema
}

async function listed(host: Host, ...expected: readonly string[]): Promise<string> {
  const mcp = await host.connect()
  const names = await toolNames(mcp)
  must(names.join() === expected.join(), `listed: ${names.join()}`)
  await host.fine(mcp)
  return `listed: ${names.join()}; traced: ${host.traced}`
}

export const schemaAttacks: readonly Attack[] = [
  {
    key: 'H9',
    name: 'a tool whose schema is 5,000 levels deep is skipped and named, not the list',
    serve: () =>
      httpPeer({
        'tools/list': ({ id, response }) => {
          const deep = `${'{"properties":{"a":'.repeat(5_000)}{}${'}}'.repeat(5_000)}`
          const entries = [
            '"a","inputSchema":{}',
            `"deep","inputSchema":${deep}`,
            `"out","inputSchema":{},"outputSchema":${deep}`,
            '"z","inputSchema":{}',
          ]
          json(
            response,
            200,
            `{"jsonrpc":"2.0","id":${id},"result":{"tools":[${entries.map(entry => `{"name":${entry}}`).join(',')}]}}`,
          )
        },
      }),
    async act(host) {
      const seen = await listed(host, 'a', 'z')
      must(host.traced.said('"deep"') && host.traced.said('"out"'), `not named: ${seen}`)
      return seen
    },
  },
  bombAttack('H10', 'a pattern that takes a backtracking engine for ever is tested in linear time', [
    {
      schema: () => ({ type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } }),
      value: () => ({ a: `${'a'.repeat(28)}!` }),
      fits: false,
    },
    {
      schema: () => ({ properties: { a: { pattern: '^(a+)+$' } } }),
      value: () => ({ a: `${'a'.repeat(1_000_000)}!` }),
      fits: false,
    },
    { schema: () => ({ properties: { a: { pattern: '^(a+)+$' } } }), value: () => ({ a: 'a'.repeat(1_000_000) }), fits: true },
  ]),
  {
    key: 'H33',
    name: 'schemas 50 and 60 levels deep are read but not used, and their tools can be called',
    serve: () =>
      httpPeer({
        'tools/list': ({ answer }) =>
          answer(tools(...[60, 50].map(depth => tool(`t${depth}`, { inputSchema: nested(depth), outputSchema: nested(depth) })))),
        'tools/call': ({ answer }) => answer(said('x', { structuredContent: {} })),
      }),
    async act(host) {
      const mcp = await host.connect({ validateArguments: true })
      for (const name of await toolNames(mcp)) must((await mcp.callTool(name)).text === 'x', `${name} failed`)
      must(host.traced.count('schema-refused') === 4, `traced: ${host.traced}`)
      await host.fine(mcp)
      return `traced: ${host.traced}`
    },
  },
  bombAttack('H34', 'schemas that refer to themselves, or double with each reference, end by the count of steps', [
    { schema: () => ({ $ref: '#' }), value: () => ({}), fits: false },
    {
      schema: () => ({ $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } }),
      value: () => ({}),
      fits: false,
    },
    { schema: () => ({ anyOf: [{ $ref: '#' }, { $ref: '#' }] }), value: () => ({}), fits: false },
    { schema: () => doubling('anyOf'), value: () => ({}), fits: false },
    { schema: () => doubling('oneOf'), value: () => ({}), fits: false },
    { schema: () => doubling('allOf'), value: () => null, fits: false },
    { schema: () => ({ $ref: 'https://127.0.0.1:1/schema' }), value: () => ({}) },
    { schema: () => ({ $ref: 'file:///etc/passwd' }), value: () => ({}) },
  ]),
  {
    key: 'H35',
    name: 'enums of 95,000 values are read without running out of anything, and not used',
    serve: () => {
      const huge = { type: 'object', properties: { a: { enum: list(95_000, index => index) } } }
      return httpPeer({
        'tools/list': ({ answer }) => answer(tools(tool('huge', { inputSchema: huge, outputSchema: huge }), tool('z'))),
        'tools/call': ({ answer }) => answer(said('x', { structuredContent: { a: 1 } })),
      })
    },
    async act(host) {
      const mcp = await host.connect({ validateArguments: true })
      const names = await toolNames(mcp)
      must(names.join() === 'huge,z', `listed: ${names.join()}`)
      must((await mcp.callTool('huge', { a: 1 })).text === 'x', 'the tool cannot be called')
      await host.fine(mcp)
      return `traced: ${host.traced}`
    },
  },
  bombAttack(
    'H36',
    'patterns of nested quantifiers, overlapping alternatives and huge counts cost no more than the text is long',
    [
      ...[
        '^(.*a){12}$',
        '(x+x+)+y',
        '^(?:a|aa|a?)*$',
        '(?:a?){500}b',
        '^(([a-z])+.)+[A-Z]([a-z])+$',
        '(?:\\ba|\\Ba)*!',
        'a{1,1000}b',
      ].map(pattern => ({
        schema: () => ({ type: 'string', pattern }),
        value: () => `${'ax'.repeat(200_000)}?`,
        fits: false,
      })),
      { schema: () => ({ pattern: '(a{1000}){1000}' }), value: () => 'a' },
      { schema: () => ({ pattern: '('.repeat(5_000) + ')'.repeat(5_000) }), value: () => 'a' },
      {
        schema: () => ({ pattern: `(?:${list(200, index => `a${index}`).join('|')})+b` }),
        value: () => 'a1'.repeat(100_000),
        fits: false,
      },
      {
        schema: () => ({ patternProperties: { '^(a+)+$': false } }),
        value: () => ({ [`${'a'.repeat(100_000)}!`]: 1 }),
        fits: true,
      },
    ],
  ),
  bombAttack('H37', 'uniqueItems over 100,000 items, once or 900 times, is decided or given up in time', [
    { schema: () => ({ uniqueItems: true }), value: () => list(100_000, index => index), fits: true },
    { schema: () => ({ uniqueItems: true }), value: () => [...list(60_000, index => [index]), [7]], fits: false },
    { schema: () => ({ uniqueItems: true }), value: () => list(40_000, index => ({ a: index, b: `${index}` })), fits: true },
    {
      schema: () => ({ allOf: list(900, () => ({ uniqueItems: true })) }),
      value: () => list(100_000, index => `s${index}`),
      fits: false,
    },
    {
      schema: () => ({ uniqueItems: true }),
      value: () => list(2_000, index => ({ a: `${'x'.repeat(500)}${index}${'y'.repeat(500)}` })),
    },
  ]),
  bombAttack('H38', 'large values against innocent schemas are checked or refused in time', [
    {
      schema: () => ({ type: 'object', additionalProperties: { type: 'integer' } }),
      value: () => Object.fromEntries(list(19_000, index => [`k${index}`, index])),
      fits: true,
    },
    {
      schema: () => ({ type: 'object', additionalProperties: { type: 'integer' } }),
      value: () => Object.fromEntries(list(150_000, index => [`k${index}`, 1])),
      fits: false,
    },
    { schema: () => ({ type: 'array' }), value: () => list(60_000, index => ({ [`k${index}`]: 1 })), fits: false },
    {
      schema: () => ({ type: 'array', items: { type: 'array', items: { type: 'number' } } }),
      value: () => list(300, () => list(300, index => index)),
      fits: true,
    },
    { schema: () => ({ type: 'string', maxLength: 3_000_000 }), value: () => '😀'.repeat(1_000_000), fits: true },
    {
      schema: () => ({ type: 'array', items: { enum: list(500, index => ({ a: index })) } }),
      value: () => list(40_000, index => ({ a: index % 500 })),
      fits: true,
    },
    {
      schema: () => ({
        type: 'array',
        items: { oneOf: ['a', 'b'].map(kind => ({ type: 'object', properties: { kind: { const: kind } }, required: ['kind'] })) },
      }),
      value: () => list(30_000, index => ({ kind: index % 2 === 0 ? 'a' : 'b' })),
      fits: true,
    },
  ]),
  bombAttack('H39', 'rules that say nothing by the thousand are not asked by the million', [
    { schema: () => ({ items: { allOf: list(10_000, () => true) } }), value: () => list(100_000, index => index), fits: true },
    {
      schema: () => ({ items: { type: [...list(7_000, () => 'null'), 'integer'] } }),
      value: () => list(100_000, index => index),
      fits: true,
    },
    {
      schema: () => ({ items: { dependentRequired: Object.fromEntries(list(3_000, index => [`n${index}`, []])) } }),
      value: () => list(60_000, () => ({})),
      fits: true,
    },
    { schema: () => ({ items: { required: list(9_000, () => 'a') } }), value: () => list(40_000, () => ({ a: 1 })), fits: true },
    {
      schema: () => ({ items: { allOf: list(400, () => ({ additionalProperties: { type: 'integer' } })) } }),
      value: () => list(40_000, index => ({ a: index, b: 1 })),
      fits: false,
    },
    {
      schema: () => ({ items: { allOf: list(300, () => ({ properties: { a: true } })), unevaluatedProperties: true } }),
      value: () => list(40_000, () => ({ a: 1, b: 1 })),
      fits: false,
    },
  ]),
]
