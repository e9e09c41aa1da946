/** Structured results: they fit the schema that the tool announced. */
import { compilePeerSchema } from '../../core/schema/peer.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { capability, listIn, resultIn, scenario, since, textIn } from '../define.ts'
import type { Advertised, Bench, Json, Scenario } from '../scenario.ts'
import { isPlain } from '../tools.ts'
import { expectResult } from './tools.ts'

const structured = ['MCP server/tools#structured-content', 'MCP server/tools#output-schema']

/** Tools with an output schema that may be called and need neither parameters nor scopes. */
function describing(peer: Advertised): readonly Json[] {
  return peer.tools.filter(
    one =>
      isRecord(one['outputSchema']) &&
      peer.mayCall(String(one['name'])) &&
      isPlain(one) &&
      listIn(one['inputSchema'], 'required').length === 0,
  )
}

async function callDescribed(bench: Bench, one: Json): Promise<void> {
  const peer = await bench.open()
  const answer = await peer.converse('tools/call', { name: one['name'], arguments: {} })
  expectResult(bench, answer)
  const result = resultIn(answer)
  if (result['isError'] === true) return
  const { structuredContent } = result
  bench.expect(structuredContent !== undefined, `${one['name']} has an outputSchema and must answer with structuredContent`, [
    answer.frame,
  ])
  const validation = compilePeerSchema(one['outputSchema'] as Json).validate(structuredContent)
  bench.expect(validation.ok, `structuredContent of ${one['name']} must fit its outputSchema`, [answer.frame])
  if (textIn(answer).trim() === '') bench.warn('structured content should come as text as well')
}

export const structuredScenarios: readonly Scenario[] = [
  scenario('base/tools/structured-output', {
    title: 'the result of a tool with an outputSchema fits it',
    proves: structured,
    revisions: since('2025-06-18'),
    needs: [
      capability('tools'),
      peer =>
        describing(peer).length === 0 ? 'it has no tool with an outputSchema that may be called without parameters' : undefined,
    ],
    async run(bench) {
      for (const one of describing(bench.peer)) await callDescribed(bench, one)
    },
  }),
  scenario('base/tools/output-schema-root', {
    title: 'an outputSchema describes an object',
    proves: structured,
    revisions: ['2025-06-18', '2025-11-25', 'draft-2026-v1'],
    needs: [capability('tools')],
    async run(bench) {
      for (const { name, outputSchema } of bench.peer.tools) {
        if (outputSchema === undefined) continue
        bench.expect(
          isRecord(outputSchema) && outputSchema['type'] === 'object',
          `the outputSchema of ${name} must have type "object"`,
        )
      }
    },
  }),
  scenario('base/tools/json-schema-kept', {
    title: 'the words of JSON Schema 2020-12 in an inputSchema are listed as they are',
    proves: ['MCP 2025-11-25 basic#json-schema-usage', 'SEP-1613'],
    revisions: since('2025-11-25'),
    needs: [
      capability('tools'),
      peer => (peer.tool('json_schema_2020_12_tool') === undefined ? 'it has no tool json_schema_2020_12_tool' : undefined),
    ],
    async run(bench) {
      const schema = bench.peer.tool('json_schema_2020_12_tool')?.['inputSchema']
      const members = isRecord(schema) ? schema : {}
      for (const word of ['$schema', '$defs', 'allOf', 'if', 'then', 'else', 'additionalProperties'])
        bench.expect(members[word] !== undefined, `${word} must not be lost from the inputSchema`)
    },
  }),
]
