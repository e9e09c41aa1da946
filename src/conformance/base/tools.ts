/** Calling tools: content of every kind, failures of every kind, results that fit the schema that was announced. */
import { compilePeerSchema } from '../../core/schema/peer.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { hasCode, hasResult, isFailure, isFault, isRefused, isResult, type PeerAnswer } from '../calls.ts'
import { official, since, table, until } from '../define.ts'
import { type Expectation, type Expectations, firstFault, is, listIn, objectIn, objectsIn, should } from '../expectations.ts'
import { callableFixture, capability, peerHas, tool } from '../needs.ts'
import { isPlain } from '../said.ts'
import type { Advertised, Json, RevisionId, Scenario } from '../scenario.ts'
import { callTool, type ScenarioContext, send, step } from '../steps.ts'
import { blockFault } from './content.ts'

const row = table('base/tools/', {
  proves: ['MCP server/tools#calling-tools'],
  revisions: official,
  needs: [capability('tools')],
})
const proves = ['MCP server/tools#error-handling']
const structured = ['MCP server/tools#structured-content', 'MCP server/tools#output-schema']

/** The answer to a call has the shape of one. */
const isWhole: Expectations<PeerAnswer, ScenarioContext> = {
  'the call must be answered with a result': isResult,
  'content must be a list': hasResult({ content: Array.isArray }),
  'isError must be true or false': hasResult({ isError: is.optional(is.boolean) }),
  'every block must be complete': ({ result }, { revision }) =>
    firstFault(listIn(result, 'content'), block => blockFault(block, revision)),
}
const isNoError: Expectation<PeerAnswer> = ({ isError }) => !isError
const isRefusedOrFailed: Expectation<PeerAnswer> = (it, x, says) => isFailure(it, x, says) || isRefused(it, x, says)
const saysSomething: Expectation<PeerAnswer> = ({ text }) => text.trim() !== ''

/** A tool of conformance suites, what its result is called, and the blocks that are in it. */
const contents: readonly (readonly [string, string, string, readonly string[], readonly RevisionId[]])[] = [
  ['text', 'test_simple_text', 'text', ['text'], official],
  ['image', 'test_image_content', 'an image', ['image'], official],
  ['audio', 'test_audio_content', 'audio', ['audio'], since('2025-03-26')],
  ['resource', 'test_embedded_resource', 'a resource', ['resource'], official],
  ['mixed', 'test_multiple_content_types', 'text, an image and a resource', ['text', 'image', 'resource'], official],
  ['resource-link', 'test_resource_link', 'a link to a resource', ['resource_link'], since('2025-06-18')],
]

function holdsKinds(kinds: readonly string[]): Expectations<PeerAnswer> {
  const holds = (kind: string) => (it: PeerAnswer) => objectsIn(it.result, 'content').some(({ type }) => type === kind)
  return Object.fromEntries(kinds.map(kind => [`the content must hold a block of type ${kind}`, holds(kind)]))
}

/** Kinds that a revision does not know yet come in another form. */
const translated: readonly (readonly [string, readonly RevisionId[]])[] = [
  ['test_audio_content', until('2024-11-05')],
  ['test_resource_link', until('2025-03-26')],
]

/** Tools that may be called, and that no scope and no yes stands before; with parameters that must be given, or without. */
function callableTools(peer: Advertised, demanding: boolean): readonly Json[] {
  const demands = (one: Json): boolean => listIn(one, 'inputSchema', 'required').length > 0
  return peer.tools.filter(one => peer.mayCall(String(one.name)) && isPlain(one) && demands(one) === demanding)
}

/** Those of them that announce their results. */
function describedTools(peer: Advertised): readonly Json[] {
  return callableTools(peer, false).filter(one => isRecord(one.outputSchema))
}

const hasDemanding = peerHas(
  peer => callableTools(peer, true).length > 0,
  'the server has no tool that may be called and requires arguments',
)
const hasDescribed = peerHas(
  peer => describedTools(peer).length > 0,
  'the server has no tool with an outputSchema that may be called without arguments',
)

async function callDescribed(x: ScenarioContext, { name, outputSchema }: Json): Promise<void> {
  const answer = await x.call(String(name), { args: {}, converse: true })
  x.hold(answer, isWhole)
  if (answer.isError) return
  const { structuredContent } = answer.result
  x.expect(structuredContent !== undefined, `${name} has an outputSchema and must answer with structuredContent`)
  const { ok } = compilePeerSchema(objectIn(outputSchema)).validate(structuredContent)
  x.expect(ok, `structuredContent of ${name} must fit its outputSchema`)
  x.hold(answer, { 'structured content should come as text as well': should(saysSomething) })
}

const odd = 'Zoë\n"漢字"\u2028🙂\\'

/** Calls of tools, right and wrong. */
export const toolScenarios: readonly Scenario[] = [
  ...contents.map(([id, name, what, kinds, revisions]) =>
    row(`call-${id}`, `a tool answers with ${what}`).by({ revisions }, [
      callTool(name, { converse: true }).expect({ ...isWhole, ...holdsKinds(kinds), 'the call must succeed': isNoError }),
    ]),
  ),
  ...translated.map(([name, revisions]) =>
    row(`older-${name}`, `${name}: blocks that the revision does not have are not sent`).by({ revisions }, [
      callTool(name, { converse: true }).expect(isWhole),
    ]),
  ),
  row('arguments-empty', 'empty arguments are equivalent to none').by([
    callTool('test_simple_text', { args: {}, converse: true }).expect(isWhole),
  ]),
  row('is-error', 'a tool that fails answers with isError and says why').by({ proves }, [
    callTool('test_error_handling', { converse: true }).expect({
      ...isWhole,
      'isError must be true': ({ isError }) => isError,
      'the result must say what went wrong': saysSomething,
    }),
  ]),
  row('unknown', 'a tool that does not exist is a protocol error, -32602').by({ proves }, [
    send('tools/call', { name: 'vivarium-no-such-tool', arguments: {} }).expect({
      'an unknown tool must be refused with a JSON-RPC error, not a result': isFault,
      'an unknown tool must be refused with error -32602': hasCode(-32602),
    }),
  ]),
  row('without-name', 'a call that names no tool is refused').by({ proves }, [
    send('tools/call', { arguments: {} }).expect({ 'tools/call without a name must be refused': isRefused }),
  ]),
  row('name-type', 'a call whose name is not a string is refused').by({ proves }, [
    send('tools/call', { name: 42, arguments: {} }).expect({
      'tools/call with a number for a name must be refused': isRefused,
    }),
  ]),
  row('invalid-arguments', 'arguments that do not fit the input schema do not reach the tool').by(
    { proves, needs: [hasDemanding] },
    [
      send('tools/call', ({ bench }) => ({ name: callableTools(bench.peer, true)[0]?.name, arguments: {} })).expect({
        'missing arguments must be refused: by error -32602, or by a result with isError': ({ code, isError, status = 0 }) =>
          code === -32602 || isError || status >= 400,
        'invalid arguments should be a result with isError, so that models can correct them (SEP-1303)': should(
          ({ code }, { revision }) => code !== -32602 || !since('2025-11-25').includes(revision),
        ),
      }),
    ],
  ),
  row('arguments-type', 'arguments that are not an object are refused').by({ proves, needs: [tool('test_simple_text')] }, [
    send('tools/call', { name: 'test_simple_text', arguments: ['x'] }).expect({
      'arguments in an array must be refused': isRefusedOrFailed,
    }),
  ]),
  row('text-unchanged MCP basic/transports', 'text of any script, with line breaks and quotes, arrives unchanged').by(
    callableFixture('greet'),
    [
      callTool('greet', { args: { name: odd }, converse: true }).expect({
        ...isWhole,
        'the answer must hold the text that was sent': ({ text }) => text.includes(odd),
      }),
    ],
  ),
  row('structured-output', 'the result of a tool with an outputSchema fits it').by(
    { proves: structured, revisions: since('2025-06-18'), needs: [hasDescribed] },
    async x => {
      for (const one of describedTools(x.bench.peer)) await callDescribed(x, one)
    },
  ),
  row('output-schema-root', 'an outputSchema describes an object').by(
    { proves: structured, revisions: ['2025-06-18', '2025-11-25', 'draft-2026-v1'], open: false },
    [
      step(({ bench }) => bench.peer.tools).expect({
        'every outputSchema must have type "object"': tools =>
          firstFault(
            tools,
            ({ name, outputSchema: schema }) =>
              schema !== undefined && objectIn(schema).type !== 'object' && `the outputSchema of ${name} must have type "object"`,
          ),
      }),
    ],
  ),
  row(
    'json-schema-kept MCP 2025-11-25 basic#json-schema-usage SEP-1613',
    'JSON Schema 2020-12 keywords in an inputSchema are listed unchanged',
  ).by({ revisions: since('2025-11-25'), open: false, needs: [tool('json_schema_2020_12_tool')] }, [
    step(({ bench }) => objectIn(bench.peer.tool('json_schema_2020_12_tool'), 'inputSchema')).expect({
      'no keyword must be lost': schema =>
        firstFault(
          ['$schema', '$defs', 'allOf', 'if', 'then', 'else', 'additionalProperties'],
          word => schema[word] === undefined && `${word} must not be lost from the inputSchema`,
        ),
    }),
  ]),
]
