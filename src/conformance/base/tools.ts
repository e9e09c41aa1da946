/** Calling tools: content of every kind, failures of every kind. */
import { isRecord } from '../../jsonrpc/message.ts'
import { capability, codeIn, listIn, type Need, official, resultIn, scenario, since, textIn, tool, until } from '../define.ts'
import type { Advertised, Bench, Json, RevisionId, Scenario } from '../scenario.ts'
import { isPlain } from '../tools.ts'
import type { Answer } from '../wire/raw-peer.ts'
import { blockFault } from './content.ts'

const calling = ['MCP server/tools#calling-tools']
const failing = ['MCP server/tools#error-handling']

/** Calls a tool and sees that the result has the shape of one. */
export async function callTool(bench: Bench, name: string, args?: Json): Promise<Answer> {
  const peer = await bench.open()
  const answer = await peer.converse('tools/call', args === undefined ? { name } : { name, arguments: args })
  expectResult(bench, answer)
  return answer
}

export function expectResult(bench: Bench, answer: Answer): void {
  bench.expect(isRecord(answer.result), 'the call must be answered with a result', [answer.frame])
  const { content, isError } = resultIn(answer)
  bench.expect(Array.isArray(content), 'content must be a list', [answer.frame])
  bench.expect(['undefined', 'boolean'].includes(typeof isError), 'isError must be true or false', [answer.frame])
  for (const block of listIn(answer.result, 'content')) {
    const fault = blockFault(block, bench.revision)
    bench.expect(fault === undefined, String(fault), [answer.frame])
  }
}

function kindsIn(answer: Answer): readonly unknown[] {
  return listIn(answer.result, 'content').map(block => (isRecord(block) ? block['type'] : undefined))
}

interface Fixture {
  readonly id: string
  readonly name: string
  readonly title: string
  readonly kinds: readonly string[]
  readonly revisions: readonly RevisionId[]
}

const fixtures: readonly Fixture[] = [
  { id: 'text', name: 'test_simple_text', title: 'a tool answers with text', kinds: ['text'], revisions: official },
  { id: 'image', name: 'test_image_content', title: 'a tool answers with an image', kinds: ['image'], revisions: official },
  {
    id: 'audio',
    name: 'test_audio_content',
    title: 'a tool answers with audio',
    kinds: ['audio'],
    revisions: since('2025-03-26'),
  },
  {
    id: 'resource',
    name: 'test_embedded_resource',
    title: 'a tool answers with a resource',
    kinds: ['resource'],
    revisions: official,
  },
  {
    id: 'mixed',
    name: 'test_multiple_content_types',
    title: 'a tool answers with text, an image and a resource',
    kinds: ['text', 'image', 'resource'],
    revisions: official,
  },
  {
    id: 'resource-link',
    name: 'test_resource_link',
    title: 'a tool answers with a link to a resource',
    kinds: ['resource_link'],
    revisions: since('2025-06-18'),
  },
]

/** Kinds that a revision does not know yet come in another form. */
const translated: readonly (readonly [string, readonly RevisionId[]])[] = [
  ['test_audio_content', until('2024-11-05')],
  ['test_resource_link', until('2025-03-26')],
]

/** A tool that may be called, with parameters that must be given; one behind scopes would be refused for those. */
function demanding(peer: Advertised): string | undefined {
  const found = peer.tools.find(
    one => peer.mayCall(String(one['name'])) && isPlain(one) && listIn(one['inputSchema'], 'required').length > 0,
  )
  return found === undefined ? undefined : String(found['name'])
}

const hasDemanding: Need = peer =>
  demanding(peer) === undefined ? 'it has no tool that may be called and demands parameters' : undefined

export const toolScenarios: readonly Scenario[] = [
  ...fixtures.map(({ id, name, title, kinds, revisions }) =>
    scenario(`base/tools/call-${id}`, {
      title,
      proves: calling,
      revisions,
      needs: [capability('tools'), tool(name)],
      async run(bench) {
        const answer = await callTool(bench, name)
        for (const kind of kinds)
          bench.expect(kindsIn(answer).includes(kind), `the content must hold a block of type ${kind}`, [answer.frame])
        bench.expect(resultIn(answer)['isError'] !== true, 'the call must succeed', [answer.frame])
      },
    }),
  ),
  ...translated.map(([name, revisions]) =>
    scenario(`base/tools/older-${name}`, {
      title: `${name}: blocks that the revision does not have are not sent`,
      proves: calling,
      revisions,
      needs: [capability('tools'), tool(name)],
      run: async bench => void (await callTool(bench, name)),
    }),
  ),
  scenario('base/tools/arguments-empty', {
    title: 'empty arguments are as good as none',
    proves: calling,
    revisions: official,
    needs: [capability('tools'), tool('test_simple_text')],
    run: async bench => void (await callTool(bench, 'test_simple_text', {})),
  }),
  scenario('base/tools/is-error', {
    title: 'a tool that fails answers with isError and says why',
    proves: failing,
    revisions: official,
    needs: [capability('tools'), tool('test_error_handling')],
    async run(bench) {
      const answer = await callTool(bench, 'test_error_handling')
      bench.expect(resultIn(answer)['isError'] === true, 'isError must be true', [answer.frame])
      bench.expect(textIn(answer).trim() !== '', 'the result must say what went wrong', [answer.frame])
    },
  }),
  scenario('base/tools/unknown', {
    title: 'a tool that does not exist is a protocol error, -32602',
    proves: failing,
    revisions: official,
    needs: [capability('tools')],
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('tools/call', { name: 'vivarium-no-such-tool', arguments: {} })
      bench.expect(answer.error !== undefined, 'an unknown tool must be refused with a JSON-RPC error, not a result', [
        answer.frame,
      ])
      bench.expect(codeIn(answer) === -32602, 'an unknown tool must be refused with error -32602', [answer.frame])
    },
  }),
  scenario('base/tools/without-name', {
    title: 'a call that names no tool is refused',
    proves: failing,
    revisions: official,
    needs: [capability('tools')],
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('tools/call', { arguments: {} })
      bench.expect(answer.error !== undefined || (answer.status ?? 0) >= 400, 'tools/call without a name must be refused', [
        answer.frame,
      ])
    },
  }),
  scenario('base/tools/name-type', {
    title: 'a call whose name is no string is refused',
    proves: failing,
    revisions: official,
    needs: [capability('tools')],
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('tools/call', { name: 42, arguments: {} })
      bench.expect(
        answer.error !== undefined || (answer.status ?? 0) >= 400,
        'tools/call with a number for a name must be refused',
        [answer.frame],
      )
    },
  }),
  scenario('base/tools/invalid-arguments', {
    title: 'arguments that do not fit the input schema do not reach the tool',
    proves: failing,
    revisions: official,
    needs: [capability('tools'), hasDemanding],
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('tools/call', { name: demanding(bench.peer), arguments: {} })
      const refused = codeIn(answer) === -32602 || resultIn(answer)['isError'] === true || (answer.status ?? 0) >= 400
      bench.expect(refused, 'missing arguments must be refused: by error -32602, or by a result with isError', [answer.frame])
      if (since('2025-11-25').includes(bench.revision) && codeIn(answer) === -32602)
        bench.warn('what is wrong with arguments should come as a result with isError, so that models can mend it (SEP-1303)')
    },
  }),
  scenario('base/tools/arguments-type', {
    title: 'arguments that are no object are refused',
    proves: failing,
    revisions: official,
    needs: [capability('tools'), tool('test_simple_text')],
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('tools/call', { name: 'test_simple_text', arguments: ['x'] })
      const refused = answer.error !== undefined || resultIn(answer)['isError'] === true || (answer.status ?? 0) >= 400
      bench.expect(refused, 'arguments in an array must be refused', [answer.frame])
    },
  }),
  scenario('base/tools/text-unchanged', {
    title: 'text of any script, with line breaks and quotes, arrives unchanged',
    proves: ['MCP basic/transports'],
    revisions: official,
    needs: [capability('tools'), tool('greet'), peer => (peer.mayCall('greet') ? undefined : 'greet may not be called')],
    async run(bench) {
      const name = 'Zoë\n"漢字"\u2028🙂\\'
      const answer = await callTool(bench, 'greet', { name })
      bench.expect(textIn(answer).includes(name), 'the answer must hold the text that was sent', [answer.frame])
    },
  }),
]
