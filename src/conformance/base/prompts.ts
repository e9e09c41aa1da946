/** Prompts, and completing what is typed for their arguments. */
import { isRecord } from '../../jsonrpc/message.ts'
import { capability, listIn, objectIn, official, prompt, resultIn, scenario, since } from '../define.ts'
import type { Advertised, Bench, Json, Scenario } from '../scenario.ts'
import type { Answer } from '../wire/raw-peer.ts'
import { blockFault } from './content.ts'

const getting = ['MCP server/prompts#getting-a-prompt']
const completing = ['MCP server/utilities/completion']

async function get(bench: Bench, name: string, args?: Json): Promise<readonly Json[]> {
  const peer = await bench.open()
  const answer = await peer.request('prompts/get', args === undefined ? { name } : { name, arguments: args })
  const messages = listIn(answer.result, 'messages')
  bench.expect(isRecord(answer.result) && Array.isArray(answer.result['messages']), 'the result must have the list messages', [
    answer.frame,
  ])
  for (const message of messages) {
    const isMessage = isRecord(message) && ['user', 'assistant'].includes(String(message['role']))
    bench.expect(isMessage, 'the role of a message must be user or assistant', [answer.frame])
    const fault = isRecord(message) ? blockFault(message['content'], bench.revision) : undefined
    bench.expect(fault === undefined, String(fault), [answer.frame])
  }
  return messages.filter(isRecord)
}

function kinds(messages: readonly Json[]): readonly unknown[] {
  return messages.map(({ content }) => (isRecord(content) ? content['type'] : undefined))
}

function required({ arguments: args }: Json): readonly unknown[] {
  return Array.isArray(args) ? args.filter(one => isRecord(one) && one['required'] === true) : []
}

function undemanding(peer: Advertised): Json | undefined {
  return peer.prompts.find(one => required(one).length === 0)
}

function demanding(peer: Advertised): Json | undefined {
  return peer.prompts.find(one => required(one).length > 0)
}

export const promptScenarios: readonly Scenario[] = [
  scenario('base/prompts/get-any', {
    title: 'a listed prompt that demands nothing can be had',
    proves: getting,
    revisions: official,
    needs: [capability('prompts'), peer => (undemanding(peer) === undefined ? 'every prompt demands arguments' : undefined)],
    async run(bench) {
      const messages = await get(bench, String(undemanding(bench.peer)?.['name']))
      bench.expect(messages.length > 0, 'a prompt must have messages')
    },
  }),
  scenario('base/prompts/get-simple', {
    title: 'a prompt without arguments gives its messages',
    proves: getting,
    revisions: official,
    needs: [capability('prompts'), prompt('test_simple_prompt')],
    async run(bench) {
      bench.expect(kinds(await get(bench, 'test_simple_prompt')).includes('text'), 'the prompt must have a text')
    },
  }),
  scenario('base/prompts/get-arguments', {
    title: 'the arguments of a prompt are in its messages, whatever they hold',
    proves: getting,
    revisions: official,
    needs: [capability('prompts'), prompt('test_prompt_with_arguments')],
    async run(bench) {
      const args = { arg1: 'Zoë "漢字"', arg2: '🙂\nsecond line' }
      const messages = await get(bench, 'test_prompt_with_arguments', args)
      const text = messages.map(({ content }) => (isRecord(content) ? String(content['text']) : '')).join()
      for (const value of Object.values(args))
        bench.expect(text.includes(value), 'the messages must hold the arguments as they were sent')
    },
  }),
  scenario('base/prompts/get-resource', {
    title: 'a prompt may hold a resource',
    proves: getting,
    revisions: official,
    needs: [capability('prompts'), prompt('test_prompt_with_embedded_resource')],
    async run(bench) {
      const messages = await get(bench, 'test_prompt_with_embedded_resource', { resourceUri: 'test://example-resource' })
      bench.expect(kinds(messages).includes('resource'), 'the messages must hold a resource')
    },
  }),
  scenario('base/prompts/get-image', {
    title: 'a prompt may hold an image',
    proves: getting,
    revisions: official,
    needs: [capability('prompts'), prompt('test_prompt_with_image')],
    async run(bench) {
      bench.expect(kinds(await get(bench, 'test_prompt_with_image')).includes('image'), 'the messages must hold an image')
    },
  }),
  scenario('base/prompts/unknown', {
    title: 'a prompt that does not exist is an error',
    proves: ['MCP server/prompts#error-handling'],
    revisions: official,
    needs: [capability('prompts')],
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('prompts/get', { name: 'vivarium-no-such-prompt' })
      bench.expect(answer.error !== undefined, 'an unknown prompt must be refused with an error', [answer.frame])
      if (answer.error?.code !== -32602) bench.warn('an unknown prompt should be refused with error -32602')
    },
  }),
  scenario('base/prompts/missing-arguments', {
    title: 'a prompt without the arguments it demands is an error',
    proves: ['MCP server/prompts#error-handling'],
    revisions: official,
    needs: [capability('prompts'), peer => (demanding(peer) === undefined ? 'no prompt demands arguments' : undefined)],
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('prompts/get', { name: demanding(bench.peer)?.['name'], arguments: {} })
      bench.expect(answer.error !== undefined, 'missing arguments must be refused with an error', [answer.frame])
      if (answer.error?.code !== -32602) bench.warn('missing arguments should be refused with error -32602')
    },
  }),
]

async function complete(bench: Bench, ref: Json, argument: Json, more: Json = {}): Promise<Answer> {
  const peer = await bench.open()
  return peer.request('completion/complete', { ref, argument, ...more })
}

function expectCompletion(bench: Bench, answer: Answer): void {
  const completion = objectIn(answer.result, 'completion')
  const { values, total, hasMore } = completion
  bench.expect(Array.isArray(values), 'completion.values must be a list', [answer.frame])
  const list = listIn(completion, 'values')
  bench.expect(
    list.every(value => typeof value === 'string'),
    'completion.values must be strings',
    [answer.frame],
  )
  bench.expect(list.length <= 100, 'completion.values must not be more than 100', [answer.frame])
  bench.expect(total === undefined || Number.isInteger(total), 'completion.total must be an integer', [answer.frame])
  bench.expect(['undefined', 'boolean'].includes(typeof hasMore), 'completion.hasMore must be true or false', [answer.frame])
}

const fixture = { type: 'ref/prompt', name: 'test_prompt_with_arguments' }

export const completionScenarios: readonly Scenario[] = [
  scenario('base/completion/prompt', {
    title: 'what is typed for an argument of a prompt is completed',
    proves: completing,
    revisions: official,
    needs: [
      peer => (peer.revision === '2024-11-05' ? undefined : capability('completions')(peer)),
      prompt('test_prompt_with_arguments'),
    ],
    async run(bench) {
      const answer = await complete(bench, fixture, { name: 'arg1', value: 'par' })
      expectCompletion(bench, answer)
      const wrong = listIn(objectIn(answer.result, 'completion'), 'values').filter(value => !String(value).startsWith('par'))
      if (wrong.length > 0) bench.warn('values that do not begin with what was typed')
    },
  }),
  scenario('base/completion/any', {
    title: 'completing an argument of a listed prompt or template gives values',
    proves: completing,
    revisions: since('2025-03-26'),
    needs: [
      capability('completions'),
      peer => (peer.prompts.some(one => listIn(one, 'arguments').length > 0) ? undefined : 'no prompt has arguments'),
    ],
    async run(bench) {
      const found = bench.peer.prompts.find(one => listIn(one, 'arguments').length > 0) ?? {}
      const [argument] = listIn(found, 'arguments')
      const named = { name: isRecord(argument) ? argument['name'] : '', value: '' }
      expectCompletion(bench, await complete(bench, { type: 'ref/prompt', name: found['name'] }, named))
    },
  }),
  scenario('base/completion/context', {
    title: 'what was already chosen may come along',
    proves: [...completing, 'SEP-598'],
    revisions: since('2025-06-18'),
    needs: [capability('completions'), prompt('test_prompt_with_arguments')],
    async run(bench) {
      const context = { arguments: { arg2: 'x' } }
      expectCompletion(bench, await complete(bench, fixture, { name: 'arg1', value: '' }, { context }))
    },
  }),
  scenario('base/completion/unknown', {
    title: 'completing for a prompt that does not exist is an error',
    proves: ['MCP server/utilities/completion#error-handling'],
    revisions: since('2025-03-26'),
    needs: [capability('completions')],
    async run(bench) {
      const answer = await complete(bench, { type: 'ref/prompt', name: 'vivarium-no-such-prompt' }, { name: 'x', value: '' })
      if (answer.error === undefined) bench.warn('an unknown prompt should be refused with error -32602')
      else if (answer.error.code !== -32602) bench.warn(`the error should be -32602, not ${answer.error.code}`)
      bench.expect(answer.error !== undefined || isRecord(resultIn(answer)['completion']), 'it must be answered', [answer.frame])
    },
  }),
  scenario('base/completion/bad-ref', {
    title: 'a reference of no known kind is refused',
    proves: ['MCP server/utilities/completion#error-handling'],
    revisions: since('2025-03-26'),
    needs: [capability('completions')],
    async run(bench) {
      const answer = await complete(bench, { type: 'ref/unicorn', name: 'x' }, { name: 'x', value: '' })
      bench.expect(answer.error !== undefined || (answer.status ?? 0) >= 400, 'a reference of no known kind must be refused', [
        answer.frame,
      ])
    },
  }),
]
