/** Resources, prompts and completions: asked for in the words of the revision. */
import { isRecord } from '../../../jsonrpc/message.ts'
import { type Play, RUN } from '../play.ts'
import { type ClientScenario, EVERY, STATELESS, scenario } from '../scenario.ts'
import { paramsOf } from '../stage/book.ts'
import { header } from './running.ts'

const URI = 'test://notes/ä b'

const everything: Play = {
  name: 'everything',
  report: true,
  steps: [
    ...RUN,
    { do: 'list', what: 'resources' },
    { do: 'list', what: 'templates' },
    { do: 'read', uri: URI, as: 'read' },
    { do: 'list', what: 'prompts' },
    { do: 'prompt', name: 'test-prompt', arguments: { who: 'Ada' }, as: 'prompt' },
    { do: 'complete', prompt: 'test-prompt', argument: 'who', value: 'A', as: 'complete' },
  ],
  capabilities: revision => ({
    tools: {},
    resources: {},
    prompts: {},
    ...(revision === '2024-11-05' ? {} : { completions: {} }),
  }),
  on: () => ({
    'resources/list': () => ({ resources: [{ uri: URI, name: 'notes' }] }),
    'resources/templates/list': () => ({ resourceTemplates: [{ uriTemplate: 'test://notes/{name}', name: 'note' }] }),
    'resources/read': () => ({ contents: [{ uri: URI, text: 'the note' }] }),
    'prompts/list': () => ({ prompts: [{ name: 'test-prompt', arguments: [{ name: 'who', required: true }] }] }),
    'prompts/get': () => ({ messages: [{ role: 'user', content: { type: 'text', text: 'Hello Ada' } }] }),
    'completion/complete': () => ({ completion: { values: ['Ada'], total: 1 } }),
  }),
}

export const using: readonly ClientScenario[] = [
  scenario('client/uses/resources', 'A resource is read by its URI as it was listed', everything, {
    proves: ['MCP basic#messages'],
    revisions: EVERY,
    check: (seen, { expect, skip }) => {
      const [read] = seen.requests('resources/read')
      if (read === undefined) return skip('the client reads no resources')
      expect(paramsOf(read)['uri'] === URI, 'The URI is not the one that was listed', [read])
      if (STATELESS.includes(seen.revision) && seen.carrier === 'http') {
        const want = seen.revision === '2026-07-28' ? `=?base64?${Buffer.from(URI).toString('base64')}?=` : undefined
        if (want !== undefined) expect(header(read, 'mcp-name') === want, `Mcp-Name must be the URI, encoded: ${want}`, [read])
      }
      const entry = seen.reported.get('read')
      expect(entry === undefined || entry.text === 'the note', `The resource reads "${entry?.text ?? entry?.message}"`)
    },
  }),
  scenario('client/uses/prompts', 'A prompt is asked for by its name, with arguments that are texts', everything, {
    proves: ['MCP basic#messages'],
    revisions: EVERY,
    check: (seen, { expect, skip }) => {
      const [get] = seen.requests('prompts/get')
      if (get === undefined) return skip('the client uses no prompts')
      const { name, arguments: args } = paramsOf(get)
      expect(name === 'test-prompt' && isRecord(args) && args['who'] === 'Ada', 'The prompt must be asked for as the step says', [
        get,
      ])
      const entry = seen.reported.get('prompt')
      expect(entry === undefined || entry.text === 'Hello Ada', `The prompt says "${entry?.text ?? entry?.message}"`)
    },
  }),
  scenario('client/uses/completion', 'A completion names what it completes and how far one has typed', everything, {
    proves: ['MCP server/utilities/completion'],
    revisions: EVERY,
    check: (seen, { expect, skip }) => {
      const [asked] = seen.requests('completion/complete')
      if (asked === undefined) return skip('the client asks for no completions')
      const { ref, argument } = paramsOf(asked)
      expect(isRecord(ref) && ref['type'] === 'ref/prompt' && ref['name'] === 'test-prompt', 'ref must be the prompt', [asked])
      expect(isRecord(argument) && argument['name'] === 'who' && argument['value'] === 'A', 'argument must have name and value', [
        asked,
      ])
    },
  }),
]
