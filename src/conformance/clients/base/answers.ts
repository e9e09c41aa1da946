/** What a client makes of answers: late, doubled, broken, huge, refused. */
import { type Play, RUN, said, testTool } from '../play.ts'
import { type ClientScenario, EVERY, reports, scenario } from '../scenario.ts'
import { argumentsOf } from '../seen.ts'
import { type Call, Refusal, silence } from '../stage/script.ts'

const twoCalls: Play = {
  name: 'out-of-order',
  report: true,
  steps: [
    { do: 'list', what: 'tools' },
    {
      do: 'together',
      steps: [
        { do: 'call', tool: 'test-tool', arguments: { n: 1 }, as: 'first' },
        { do: 'call', tool: 'test-tool', arguments: { n: 2 }, as: 'second' },
      ],
    },
  ],
  on: () => ({
    'tools/call': async ({ params, book }) => {
      const n = (params['arguments'] as { n?: unknown } | undefined)?.n
      // The first is answered when the second has been.
      if (n === 1) await book.until(() => (book.notes.has('second') ? true : undefined), 2_000)
      else book.notes.set('second', true)
      return said(`answer ${String(n)}`)
    },
  }),
}

/** Before the answer come an answer to nobody, a notification that nobody knows and a stranger's progress. */
const noise: Play = {
  name: 'noise',
  steps: [...RUN, { do: 'call', tool: 'test-tool', arguments: { again: true }, as: 'again' }],
  report: true,
  on: () => ({
    'tools/call': call => {
      call.way.write(JSON.stringify({ jsonrpc: '2.0', id: 'nobody-asked', result: {} }))
      call.tell('notifications/of-tomorrow', { news: true })
      call.tell('notifications/progress', { progressToken: 'nobody-asked', progress: 1 })
      return said('done')
    },
  }),
}

const garbage: Play = {
  name: 'garbage',
  steps: [...RUN, { do: 'call', tool: 'test-tool', arguments: { again: true }, as: 'again' }],
  report: true,
  on: () => ({
    'tools/call': call => {
      for (const text of ['{"jsonrpc":"2.0","method":', '[]', 'null', '{"jsonrpc":"1.0","id":7}', '{}']) call.way.write(text)
      return said('done')
    },
  }),
}

const MIB = 1024 * 1024

const huge: Play = {
  name: 'huge',
  alone: true,
  steps: [
    { do: 'list', what: 'tools' },
    // Who refuses a frame unread cannot know whose answer it was.
    { do: 'call', tool: 'test-tool', arguments: {}, timeout: 2_000, as: 'call' },
    { do: 'call', tool: 'test-tool', arguments: { again: true }, as: 'again' },
  ],
  on: () => ({ 'tools/call': call => said(isAgain(call) ? 'small' : 'x'.repeat(20 * MIB)) }),
}

const refused: Play = {
  name: 'refused',
  steps: RUN,
  report: true,
  on: () => ({
    'tools/call': () => {
      throw new Refusal(-32602, 'No such thing', { why: 'test' })
    },
  }),
}

const toolError: Play = {
  name: 'tool-error',
  steps: RUN,
  report: true,
  on: () => ({ 'tools/call': () => said('It did not work', { isError: true }) }),
}

const structured: Play = {
  name: 'structured',
  steps: RUN,
  report: true,
  tools: [{ ...testTool, outputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } }],
  on: () => ({ 'tools/call': () => said('{"n":"many"}', { structuredContent: { n: 'many' } }) }),
}

/** 2025-03-26 lets servers gather what they say. */
const batch: Play = {
  name: 'batch',
  steps: [...RUN, { do: 'call', tool: 'test-tool', arguments: { again: true }, as: 'again' }],
  report: true,
  on: () => ({
    'tools/call': call => {
      if (isAgain(call)) return said('done')
      const note = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'hello' } }
      call.way.finish(JSON.stringify([note, { jsonrpc: '2.0', id: call.id, result: said('gathered') }]))
      return silence
    },
  }),
}

function isAgain({ params }: Call): boolean {
  return (params['arguments'] as { again?: unknown } | undefined)?.again === true
}

/** Both calls were made, and the client says that both were answered. */
function bothWork(id: string, title: string, play: Play, statement: string): ClientScenario {
  return scenario(id, title, play, {
    proves: [statement],
    revisions: EVERY,
    check: (seen, { expect }) => {
      const calls = seen.calls('test-tool')
      expect(calls.length > 0, 'The client did not call test-tool', seen.fromClient.slice(-2))
      const again = calls.some(call => argumentsOf(call)['again'] === true)
      if (again) {
        const { reported } = seen
        for (const step of ['call', 'again']) {
          const entry = reported.get(step)
          expect(entry === undefined || entry.ok, `The client did not get the answer of its call: ${entry?.message ?? ''}`, calls)
        }
      } else
        expect(seen.end.error === undefined && !seen.end.timedOut, `The client failed: ${seen.end.error ?? 'it hung'}`, calls)
    },
  })
}

export const answering: readonly ClientScenario[] = [
  scenario('client/answers/matched', 'Answers in another order come to those who asked', twoCalls, {
    proves: ['MCP basic#requests'],
    revisions: EVERY,
    needs: reports,
    check: ({ reported }, { expect }) => {
      for (const [step, text] of [
        ['first', 'answer 1'],
        ['second', 'answer 2'],
      ] as const) {
        expect(
          reported.get(step)?.text === text,
          `The ${step} call got "${reported.get(step)?.text ?? reported.get(step)?.message}"`,
        )
      }
    },
  }),
  bothWork(
    'client/answers/noise',
    'Strange notifications and answers that nobody waits for do no harm',
    noise,
    'MCP basic#messages',
  ),
  bothWork('client/answers/garbage', 'Frames that are no messages do no harm', garbage, 'JSON-RPC 5.1'),
  scenario('client/answers/huge', 'A huge answer is taken or refused, and the client goes on', huge, {
    proves: ['MCP basic/transports'],
    revisions: EVERY,
    check: (seen, { expect }) => {
      expect(!seen.end.timedOut, 'The client hangs after a frame of 20 MiB')
      const calls = seen.calls('test-tool')
      expect(calls.length > 0, 'The client did not call test-tool')
      const stopped = calls.length === 1 && seen.end.error === undefined && (seen.end.code ?? 0) !== 0
      expect(!stopped, `The client died of a frame of 20 MiB (code ${seen.end.code})`)
    },
  }),
  scenario('client/answers/refused', 'An error is an error, and is not asked for again', refused, {
    proves: ['MCP 2026-07-28 basic#results'],
    revisions: EVERY,
    check: (seen, { expect }) => {
      const calls = seen.calls('test-tool')
      expect(calls.length === 1, `A call with bad parameters was made ${calls.length} times`, calls)
      const entry = seen.reported.get('call')
      expect(entry === undefined || !entry.ok, 'The client takes an error for a result', calls)
    },
  }),
  scenario('client/answers/tool-error', 'A tool that failed is told from one that worked', toolError, {
    proves: ['MCP server/tools#error-handling'],
    revisions: EVERY,
    needs: reports,
    check: (seen, { expect }) => {
      const entry = seen.reported.get('call')
      expect(entry?.isError === true || entry?.ok === false, 'The client takes isError for success', seen.calls())
      expect(seen.calls('test-tool').length === 1, 'A tool that failed for good was called again', seen.calls())
    },
  }),
  scenario('client/answers/structured', 'Structured content that breaks its schema is noticed', structured, {
    proves: ['MCP server/tools#structured-content'],
    revisions: ['2025-06-18', '2025-11-25', '2026-07-28'],
    needs: reports,
    check: (seen, { warn }) => {
      if (seen.reported.get('call')?.ok === true) warn('Clients should check structured content against the output schema')
    },
  }),
  scenario('client/answers/batch', 'Answers that come gathered in an array are taken apart', batch, {
    proves: ['MCP 2025-03-26 basic#batching'],
    revisions: ['2025-03-26'],
    check: (seen, { expect }) => {
      expect(!seen.end.timedOut, 'The client waits for an answer that came in an array')
      const entry = seen.reported.get('call')
      expect(entry === undefined || entry.ok, `The client did not take the answer out of the array: ${entry?.message ?? ''}`)
    },
  }),
]
