/** What a client answers when it is asked: pings, strangers, forms, pages, models, folders. */
import { isRecord } from '../../../jsonrpc/message.ts'
import { sessions, since } from '../../define.ts'
import { fitsPattern, is, objectIn, orSkip } from '../../expectations.ts'
import type { Json } from '../../scenario.ts'
import { answers, calls, declares, sent, shownBy, some, times } from '../checks.ts'
import { clientTable } from '../define.ts'
import type { Observation } from '../log.ts'
import { type Answers, call, type Play, play, textResult } from '../play.ts'
import type { Questions } from '../script.ts'
import type { ScriptedServer } from '../server.ts'

const elicits = since('2025-06-18')
const urls = since('2025-11-25')
const all = since('2024-11-05')

/** The server asks for one thing while its tool runs; what was answered is noted. */
function question(
  name: string,
  asked: Questions[string] | ((server: ScriptedServer) => Questions[string]),
  given: Answers,
): Play {
  return play(name, {
    answers: given,
    on: server => ({
      'tools/call': async ({ questions, log }) => {
        log.notes.set('answer', (await questions({ asked: typeof asked === 'function' ? asked(server) : asked }))['asked'])
        return textResult('done')
      },
    }),
  })
}

/** What the client answered; empty: nothing. */
function answered(seen: Observation): Json {
  return objectIn(seen.note('answer'))
}

/** The answer fits, which all answers show. */
function gives(check: (answer: Json, seen: Observation) => boolean) {
  return shownBy(answers, (seen: Observation) => check(answered(seen), seen))
}

/** Ids of both kinds, small and odd ones: they come back as they are. */
const strange = [
  ['ping-1', 'ping'],
  [0, 'ping'],
  ['', 'vivarium/of-tomorrow'],
  [-7, 'tools/list'],
] as const

const unknownRequests = play('strangers', {
  on: {
    'tools/call': async ({ ask }) => {
      for (const [id, method] of strange) await ask(method, method === 'ping' ? undefined : {}, id)
      return textResult('done')
    },
  },
})

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
const prefilled = {
  type: 'object',
  properties: {
    name: { type: 'string', default: 'John Doe' },
    age: { type: 'integer', default: 30 },
    score: { type: 'number', default: 95 },
    status: { type: 'string', enum: ['active', 'inactive'], default: 'active' },
    verified: { type: 'boolean', default: true },
  },
}

const undeclared = play('undeclared-questions', {
  on: {
    'tools/call': async ({ ask }) => {
      await ask('sampling/createMessage', { messages: [hello], maxTokens: 5 }, 'ask-sampling')
      await ask('roots/list', {}, 'ask-roots')
      await ask('elicitation/create', { message: 'Name?', requestedSchema: form }, 'ask-elicitation')
      return textResult('done')
    },
  },
})

/** A form that the user is asked to fill in. */
export function elicitation(message: string, requestedSchema: Json): Questions[string] {
  return { method: 'elicitation/create', params: { message, requestedSchema } }
}

const filled = { name: 'Ada', age: 36, member: true, colour: 'red' }
const whoAreYou = elicitation('Who are you?', form)
const accepted = question('elicit-form', whoAreYou, { elicit: { action: 'accept', content: filled } })
const declined = question('elicit-decline', whoAreYou, { elicit: { action: 'decline' } })
const defaults = question('elicit-defaults', elicitation('All right?', prefilled), { elicit: { action: 'accept', content: {} } })
const page = question(
  'elicit-url',
  ({ origin, revision }) => {
    const id = revision === '2026-07-28' ? {} : { elicitationId: 'page-1' }
    return { method: 'elicitation/create', params: { mode: 'url', message: 'Sign here', url: `${origin}/consent`, ...id } }
  },
  { elicit: { action: 'accept' } },
)

const sampled = { messages: [hello], maxTokens: 50 }
const lookUp = [{ name: 'look-up', description: 'Looks up', inputSchema: { type: 'object' } }]
const sampling = question('sample', { method: 'sampling/createMessage', params: sampled }, { sample: 'Paris' })
const samplingTools = question(
  'sample-tools',
  { method: 'sampling/createMessage', params: { ...sampled, tools: lookUp, toolChoice: { mode: 'auto' } } },
  { sample: 'Paris', sampleTools: true },
)
const askRoots = { method: 'roots/list', params: {} }
const roots = question('roots', askRoots, { roots: [{ uri: 'file:///srv/space', name: 'space' }] })

const rootsChanged = play('roots-changed', {
  answers: { roots: [{ uri: 'file:///srv/space' }] },
  steps: [call('call'), { do: 'roots', roots: [{ uri: 'file:///srv/other' }] }, call('again', { again: true })],
  on: {
    'tools/call': async ({ questions, log: { notes } }) => {
      notes.set('last roots', (await questions({ asked: askRoots }))['asked'])
      return textResult('done')
    },
  },
})

const row = clientTable('client/asked/', { revisions: sessions })
const wasAsked = sent(calls, 'the client did not call the tool that asks')
const asked = (of: Play, revisions: typeof sessions, path: string) => ({ play: of, revisions, needs: [declares(path), wasAsked] })
const unknownAsked = [unknownRequests, wasAsked] as const
const isAction = is.oneOf('accept', 'decline', 'cancel')
const noContent = gives(({ content, action }) => action === 'accept' || content === undefined)

/** In an accepted form. */
function filledIn(test: (content: Json) => boolean) {
  return gives(({ action, content }) => action !== 'accept' || test(objectIn(content)))
}

function isBlock(block: unknown): boolean {
  return isRecord(block) && typeof block['type'] === 'string'
}

const lets = { 'the client does not support sampling': orSkip((seen: Observation) => answered(seen)['refused'] === undefined) }

/** What a server of a session asks. */
export const askingScenarios = [
  row('ping MCP basic/utilities/ping', 'A ping is answered with an empty result, under its own id').by(
    unknownAsked,
    (seen, x) => {
      for (const id of ['ping-1', 0]) {
        const answer = seen.answer(id)
        const result = answer?.frame?.['result']
        const empty = isRecord(result) && Object.keys(result).every(key => key === '_meta')
        x.expect(empty, `ping ${JSON.stringify(id)} was not answered with {}`, [answer])
      }
    },
  ),
  row('unknown JSON-RPC 5.1', 'A method that the client does not have is answered -32601').by(
    unknownAsked,
    (seen, { expect }) => {
      for (const id of ['', -7]) {
        const answer = seen.answer(id)
        const right = objectIn(answer?.frame, 'error')['code'] === -32601
        expect(right, `An unknown request (id ${JSON.stringify(id)}) was not answered -32601`, [answer])
      }
    },
  ),
  row('undeclared MCP basic/lifecycle#capability-negotiation', 'The client refuses what it does not declare').by(
    [undeclared, wasAsked],
    (seen, x) => {
      const kinds = ['sampling', 'roots', 'elicitation'].filter(kind => !seen.has(kind))
      if (kinds.length === 0) x.leave('the client declares every capability')
      for (const kind of kinds) {
        const answer = seen.answer(`ask-${kind}`)
        x.expect(isRecord(answer?.frame?.['error']), `${kind} was not declared, and was not refused`, [answer])
      }
    },
  ),
  row('form MCP client/elicitation', 'A form is answered with matching values').by(asked(accepted, elicits, 'elicitation'), {
    'The form was not answered with an action': gives(({ action }) => isAction(action)),
    'Only an accepted form has content': noContent,
    'name is required and a text': filledIn(({ name }) => is.word(name)),
    'age is an integer': filledIn(({ age }) => is.optional(Number.isInteger)(age)),
    'member is a boolean': filledIn(({ member }) => is.optional(is.boolean)(member)),
    'colour is one of two': filledIn(({ colour }) => is.oneOf(undefined, 'red', 'green')(colour)),
  }),
  row('decline MCP client/elicitation', 'A declined form contains no values').by(asked(declined, elicits, 'elicitation'), {
    'the client accepts every form': orSkip(gives(({ action }) => action !== 'accept')),
    'The form was not answered with an action': gives(({ action }) => isAction(action)),
    'Only an accepted form has content': noContent,
  }),
  row('defaults MCP client/elicitation', 'Fields that the user leaves open get the defaults of the form').by(
    asked(defaults, urls, 'elicitation'),
    (seen, x) => {
      const { action, content } = answered(seen)
      if (action !== 'accept') x.leave('the client does not accept the form')
      const missing = Object.entries(prefilled.properties).filter(([key, want]) => objectIn(content)[key] !== want.default)
      const named = missing.map(([key]) => key).join(', ')
      x.expect(missing.length === 0, `Defaults were not filled in: ${named}`, seen.answers)
    },
  ),
  row('page JSON-RPC 5.1 E4-10', 'A URL is shown to the user, never fetched by the client').by(
    { play: page, revisions: urls, needs: [wasAsked] },
    (seen, x) => {
      x.expect(seen.visits('GET', '/consent').length === 0, 'The client fetched the page instead of showing it')
      if (!seen.has('elicitation')) x.leave('the client does not declare elicitation')
      const { action, content, refused } = answered(seen)
      if (!seen.has('elicitation.url')) {
        const told = seen.stateless ? !isRecord(seen.note('answer')) : objectIn(refused)['code'] === -32602
        return x.expect(told, 'A client without URL support must answer -32602', seen.answers)
      }
      x.expect(isAction(action), 'The page was not answered with an action', seen.answers)
      x.expect(content === undefined, 'A page is answered without content', seen.answers)
    },
  ),
  row('sample MCP client/sampling', 'A sampling request is answered with a message, its model and its role').by(
    asked(sampling, all, 'sampling'),
    {
      ...lets,
      'role must be assistant': gives(({ role }) => role === 'assistant'),
      'model must name the model that answered': gives(({ model }) => is.string(model)),
      'content must be a block (from 2025-11-25: or blocks)': gives(({ content }) => {
        const blocks = [content].flat()
        return blocks.length > 0 && blocks.every(isBlock)
      }),
      'The number of blocks': seen =>
        !Array.isArray(answered(seen)['content']) || urls.includes(seen.revision) || `${seen.revision} allows only one block`,
    },
  ),
  row('sample-tools MCP client/sampling', 'The model uses only the tools that are offered').by(
    asked(samplingTools, urls, 'sampling.tools'),
    {
      ...lets,
      'The answer must be a message of the assistant': gives(
        ({ role, content }) => role === 'assistant' && [content].flat().every(isBlock),
      ),
      'A tool was used that was not offered': gives(({ content }) =>
        usesIn(content).every(use => fitsPattern({ name: 'look-up', id: is.string }, use)),
      ),
      'If tools are used, stopReason must be toolUse': gives(
        ({ content, stopReason }) => usesIn(content).length === 0 || stopReason === 'toolUse',
      ),
    },
  ),
  row('roots MCP client/roots', 'Roots are file URIs').by(asked(roots, all, 'roots'), {
    'roots/list must be answered with roots whose uri begins with file://': gives(
      ({ roots: list }) => Array.isArray(list) && list.every(root => String(objectIn(root)['uri']).startsWith('file://')),
    ),
  }),
  row('roots-changed MCP client/roots#root-list-changes', 'Changed roots are announced and returned by the next roots/list').by(
    [rootsChanged, declares('roots.listChanged')],
    {
      'the client did not change its roots': orSkip(times(calls, count => count > 1)),
      'The change was not announced': some(seen => seen.notices('notifications/roots/list_changed')),
      'The old roots were returned after the change': shownBy(answers, seen =>
        JSON.stringify(seen.note('last roots') ?? {}).includes('file:///srv/other'),
      ),
    },
  ),
]

function usesIn(content: unknown): readonly Json[] {
  return [content]
    .flat()
    .filter(isRecord)
    .filter(({ type }) => type === 'tool_use')
}
