/** What a client answers when it is asked: pings, strangers, forms, pages, models, folders. */
import { isRecord } from '../../../jsonrpc/message.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import { type Play, RUN, said } from '../play.ts'
import { type ClientScenario, declares, SESSIONS, scenario } from '../scenario.ts'
import type { Seen } from '../seen.ts'
import type { Frame } from '../stage/book.ts'
import type { Call } from '../stage/script.ts'

const ELICITS: readonly RevisionId[] = ['2025-06-18', '2025-11-25', '2026-07-28', 'draft-2026-v1']
const URLS: readonly RevisionId[] = ['2025-11-25', '2026-07-28', 'draft-2026-v1']
const SAMPLES: readonly RevisionId[] = [...SESSIONS, '2026-07-28', 'draft-2026-v1']

/** One play in which the server asks for one thing, by its method, while the tool runs. */
function question(name: string, asked: { method: string; params: Frame }, answers: Play['answers'] = {}): Play {
  return {
    name,
    steps: RUN,
    answers,
    on: () => ({
      'tools/call': async call => {
        call.book.notes.set('answer', (await call.questions({ asked }))['asked'])
        return said('done')
      },
    }),
  }
}

/** What the client answered; undefined: nothing. */
function answered(seen: Seen): Frame | undefined {
  const answer = seen.note<unknown>('answer')
  return isRecord(answer) ? answer : undefined
}

const strangers: Play = {
  name: 'strangers',
  steps: RUN,
  on: () => ({
    'tools/call': async call => {
      for (const [id, method] of STRANGE) await call.ask(method, method === 'ping' ? undefined : {}, id)
      return said('done')
    },
  }),
}

/** Ids of both kinds, small and odd ones: they come back as they are. */
const STRANGE = [
  ['ping-1', 'ping'],
  [0, 'ping'],
  ['', 'vivarium/of-tomorrow'],
  [-7, 'tools/list'],
] as const

const undeclared: Play = {
  name: 'undeclared-questions',
  steps: RUN,
  on: () => ({
    'tools/call': async (call: Call) => {
      await call.ask('sampling/createMessage', { messages: [hello], maxTokens: 5 }, 'ask-sampling')
      await call.ask('roots/list', {}, 'ask-roots')
      await call.ask('elicitation/create', { message: 'Name?', requestedSchema: form }, 'ask-elicitation')
      return said('done')
    },
  }),
}

const hello = { role: 'user', content: { type: 'text', text: 'The capital of France?' } }

const form = {
  type: 'object',
  properties: {
    name: { type: 'string', minLength: 1 },
    age: { type: 'integer', minimum: 0 },
    member: { type: 'boolean' },
    colour: { type: 'string', enum: ['red', 'green'] },
  },
  required: ['name'],
}
const filled = { name: 'Ada', age: 36, member: true, colour: 'red' }

const formPlay = question(
  'elicit-form',
  { method: 'elicitation/create', params: { message: 'Who are you?', requestedSchema: form } },
  { elicit: { action: 'accept', content: filled } },
)
const declined = question(
  'elicit-decline',
  { method: 'elicitation/create', params: { message: 'Who are you?', requestedSchema: form } },
  { elicit: { action: 'decline' } },
)
const defaults = question(
  'elicit-defaults',
  {
    method: 'elicitation/create',
    params: {
      message: 'All right?',
      requestedSchema: {
        type: 'object',
        properties: {
          name: { type: 'string', default: 'John Doe' },
          age: { type: 'integer', default: 30 },
          score: { type: 'number', default: 95 },
          status: { type: 'string', enum: ['active', 'inactive'], default: 'active' },
          verified: { type: 'boolean', default: true },
        },
      },
    },
  },
  { elicit: { action: 'accept', content: {} } },
)

const page: Play = {
  name: 'elicit-url',
  steps: RUN,
  answers: { elicit: { action: 'accept' } },
  on: ({ origin, revision }) => ({
    'tools/call': async call => {
      const id = revision === '2026-07-28' ? {} : { elicitationId: 'page-1' }
      const params = { mode: 'url', message: 'Sign here', url: `${origin}/consent`, ...id }
      call.book.notes.set('answer', (await call.questions({ asked: { method: 'elicitation/create', params } }))['asked'])
      return said('done')
    },
  }),
}

const sampling = question(
  'sample',
  { method: 'sampling/createMessage', params: { messages: [hello], maxTokens: 50 } },
  { sample: 'Paris' },
)
const samplingTools = question(
  'sample-tools',
  {
    method: 'sampling/createMessage',
    params: {
      messages: [hello],
      maxTokens: 50,
      tools: [{ name: 'look-up', description: 'Looks up', inputSchema: { type: 'object' } }],
      toolChoice: { mode: 'auto' },
    },
  },
  { sample: 'Paris', sampleTools: true },
)
const roots = question('roots', { method: 'roots/list', params: {} }, { roots: [{ uri: 'file:///srv/space', name: 'space' }] })

const rootsChanged: Play = {
  name: 'roots-changed',
  answers: { roots: [{ uri: 'file:///srv/space' }] },
  steps: [
    { do: 'call', tool: 'test-tool', arguments: {}, as: 'call' },
    { do: 'roots', roots: [{ uri: 'file:///srv/other' }] },
    { do: 'call', tool: 'test-tool', arguments: { again: true }, as: 'again' },
  ],
  on: () => ({
    'tools/call': async call => {
      const { asked } = await call.questions({ asked: { method: 'roots/list', params: {} } })
      call.book.notes.set('answers', [...((call.book.notes.get('answers') as unknown[] | undefined) ?? []), asked])
      return said('done')
    },
  }),
}

const wasAsked = (seen: Seen): string | undefined =>
  seen.calls('test-tool').length > 0 ? undefined : 'the client did not call the tool that asks'

function needing(path: string): (seen: Seen) => string | undefined {
  const declared = declares(path)
  return seen => declared(seen) ?? wasAsked(seen)
}

export const asking: readonly ClientScenario[] = [
  scenario('client/asked/ping', 'A ping is answered with an empty result, under its own id', strangers, {
    proves: ['MCP basic/utilities/ping'],
    revisions: SESSIONS,
    needs: wasAsked,
    check: (seen, { expect }) => {
      for (const id of ['ping-1', 0]) {
        const answer = seen.answer(id)
        const result = answer?.frame?.['result']
        expect(
          isRecord(result) && Object.keys(result).filter(key => key !== '_meta').length === 0,
          `ping ${JSON.stringify(id)} was not answered with {}`,
          [answer],
        )
      }
    },
  }),
  scenario('client/asked/unknown', 'A method that the client does not have is answered -32601', strangers, {
    proves: ['JSON-RPC 5.1'],
    revisions: SESSIONS,
    needs: wasAsked,
    check: (seen, { expect }) => {
      for (const id of ['', -7]) {
        const answer = seen.answer(id)
        const error = answer?.frame?.['error']
        expect(
          isRecord(error) && error['code'] === -32601,
          `An unknown request (id ${JSON.stringify(id)}) was not answered -32601`,
          [answer],
        )
      }
    },
  }),
  scenario('client/asked/undeclared', 'What the client does not declare it refuses, and does not do', undeclared, {
    proves: ['MCP basic/lifecycle#capability-negotiation'],
    revisions: SESSIONS,
    needs: wasAsked,
    check: (seen, { expect, skip }) => {
      const kinds = ['sampling', 'roots', 'elicitation'].filter(kind => !seen.has(kind))
      if (kinds.length === 0) skip('the client declares everything that it could be asked')
      for (const kind of kinds) {
        const answer = seen.answer(`ask-${kind}`)
        expect(isRecord(answer?.frame?.['error']), `${kind} was not declared, and was not refused`, [answer])
      }
    },
  }),
  scenario('client/asked/form', 'A form is answered with what it asks for', formPlay, {
    proves: ['MCP client/elicitation'],
    revisions: ELICITS,
    needs: needing('elicitation'),
    check: (seen, { expect }) => {
      const { action, content } = answered(seen) ?? {}
      expect(['accept', 'decline', 'cancel'].includes(String(action)), 'The form was not answered with an action', seen.answers)
      const given: Frame = isRecord(content) ? content : {}
      expect(action === 'accept' || content === undefined, 'Only an accepted form has content', seen.answers)
      if (action !== 'accept') return
      const { name, age, member, colour } = given
      expect(typeof name === 'string' && name !== '', 'name is required and a text', seen.answers)
      expect(age === undefined || Number.isInteger(age), 'age is an integer', seen.answers)
      expect(member === undefined || typeof member === 'boolean', 'member is a boolean', seen.answers)
      expect(colour === undefined || colour === 'red' || colour === 'green', 'colour is one of two', seen.answers)
    },
  }),
  scenario('client/asked/decline', 'A refused form carries nothing that was typed', declined, {
    proves: ['MCP client/elicitation'],
    revisions: ELICITS,
    needs: needing('elicitation'),
    check: (seen, { expect, skip }) => {
      const answer = answered(seen)
      if (answer?.['action'] === 'accept') skip('the client accepts whatever it is asked')
      expect(['decline', 'cancel'].includes(String(answer?.['action'])), 'The form was not answered with an action', seen.answers)
      expect(answer?.['content'] === undefined, 'Only an accepted form has content', seen.answers)
    },
  }),
  scenario('client/asked/defaults', 'What the user leaves open is filled with the defaults of the form', defaults, {
    proves: ['MCP client/elicitation'],
    revisions: URLS,
    needs: needing('elicitation'),
    check: (seen, { expect, skip }) => {
      const { action, content } = answered(seen) ?? {}
      if (action !== 'accept') skip('the client does not accept the form')
      const want: Frame = { name: 'John Doe', age: 30, score: 95, status: 'active', verified: true }
      const given: Frame = isRecord(content) ? content : {}
      const missing = Object.keys(want).filter(key => given[key] !== want[key])
      expect(missing.length === 0, `Defaults were not filled in: ${missing.join(', ')}`, seen.answers)
    },
  }),
  scenario('client/asked/page', 'A page is consented to, never fetched by the client itself', page, {
    proves: ['JSON-RPC 5.1', 'E4-10'],
    revisions: URLS,
    needs: wasAsked,
    check: (seen, { expect, skip }) => {
      expect(seen.visits('GET', '/consent').length === 0, 'The client fetched the page it was to show')
      const answer = answered(seen)
      if (!seen.has('elicitation')) skip('the client does not declare elicitation')
      if (!seen.has('elicitation.url')) {
        const refused = answer?.['refused']
        const said = seen.stateless ? answer === undefined : isRecord(refused) && refused['code'] === -32602
        return expect(said, 'A client without pages answers -32602', seen.answers)
      }
      expect(
        ['accept', 'decline', 'cancel'].includes(String(answer?.['action'])),
        'The page was not answered with an action',
        seen.answers,
      )
      expect(answer?.['content'] === undefined, 'A page is answered without content', seen.answers)
    },
  }),
  scenario('client/asked/sample', 'A question to the model is answered with a message, its model and its role', sampling, {
    proves: ['MCP client/sampling'],
    revisions: SAMPLES,
    needs: needing('sampling'),
    check: (seen, { expect, skip }) => {
      const answer = answered(seen)
      if (answer?.['refused'] !== undefined) skip('the client lets nobody ask its model')
      expect(answer?.['role'] === 'assistant', 'role must be assistant', seen.answers)
      expect(typeof answer?.['model'] === 'string', 'model must name the model that answered', seen.answers)
      const blocks = [answer?.['content']].flat()
      expect(blocks.length > 0 && blocks.every(isBlock), 'content must be a block (from 2025-11-25: or blocks)', seen.answers)
      const many = Array.isArray(answer?.['content'])
      expect(!many || URLS.includes(seen.revision), `${seen.revision} knows one block only`, seen.answers)
    },
  }),
  scenario('client/asked/sample-tools', 'A model that is given tools uses only those', samplingTools, {
    proves: ['MCP client/sampling'],
    revisions: URLS,
    needs: needing('sampling.tools'),
    check: (seen, { expect, skip }) => {
      const answer = answered(seen)
      if (answer?.['refused'] !== undefined) skip('the client lets nobody ask its model')
      const blocks = [answer?.['content']].flat()
      expect(
        answer?.['role'] === 'assistant' && blocks.every(isBlock),
        'The answer must be a message of the assistant',
        seen.answers,
      )
      const uses = blocks.filter(isRecord).filter(({ type }) => type === 'tool_use')
      for (const use of uses)
        expect(use['name'] === 'look-up' && typeof use['id'] === 'string', 'A tool was used that was not offered', seen.answers)
      expect(uses.length === 0 || answer?.['stopReason'] === 'toolUse', 'Who uses tools stops with toolUse', seen.answers)
    },
  }),
  scenario('client/asked/roots', 'Roots are file URIs', roots, {
    proves: ['MCP client/roots'],
    revisions: SAMPLES,
    needs: needing('roots'),
    check: (seen, { expect }) => {
      const list = answered(seen)?.['roots']
      const good = Array.isArray(list) && list.every(root => isRecord(root) && String(root['uri']).startsWith('file://'))
      expect(good, 'roots/list must be answered with roots whose uri begins with file://', seen.answers)
    },
  }),
  scenario('client/asked/roots-changed', 'Other roots are announced, and given when asked again', rootsChanged, {
    proves: ['MCP client/roots#root-list-changes'],
    revisions: SESSIONS,
    needs: declares('roots.listChanged'),
    check: (seen, { expect, skip }) => {
      if (seen.calls('test-tool').length < 2) skip('the client did not change its roots')
      expect(
        seen.notices('notifications/roots/list_changed').length > 0,
        'The change was not announced',
        seen.fromClient.slice(-4),
      )
      const last = (seen.note<unknown[]>('answers') ?? []).at(-1)
      expect(JSON.stringify(last ?? {}).includes('file:///srv/other'), 'The old roots were given after the change', seen.answers)
    },
  }),
]

function isBlock(block: unknown): boolean {
  return isRecord(block) && typeof block['type'] === 'string'
}
