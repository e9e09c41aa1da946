/** Faults of hosts, one at a time, each with the scenario that must notice it. */
import type { Mutation } from './client-faults.ts'
import type { Message } from './wrapping.ts'

type Params = Record<string, unknown>
const params = (message: Message): Params => (message['params'] ?? {}) as Params
const isAnswer = (message: Message, ...ids: readonly string[]): boolean =>
  !('method' in message) && ids.includes(String(message['id']))
const answer = (message: Message, result: Params): Message => ({ jsonrpc: '2.0', id: message['id'], result })
const without = (object: Params, name: string): Params =>
  Object.fromEntries(Object.entries(object).filter(([key]) => key !== name))

export const hostFaults: readonly Mutation[] = [
  {
    says: 'accepts pushes of disabled sets',
    caught: 'live/host/L6.6-1',
    fault: { out: message => (isAnswer(message, 'disabled') ? answer(message, { accepted: true }) : message) },
  },
  {
    says: 'takes pushes without an id',
    caught: 'live/host/L9.2-1',
    fault: { out: message => (isAnswer(message, 'no-event-id') ? answer(message, { accepted: true }) : message) },
  },
  {
    says: 'takes an event twice',
    caught: 'live/host/L9.4-1',
    fault: {
      out: message => (isAnswer(message, 'repeated') ? answer(message, { accepted: true, inferenceId: 'another' }) : message),
    },
  },
  {
    says: 'does not say which model it has',
    caught: 'live/host/L12-1',
    fault: { out: message => (isAnswer(message, 'model') ? answer(message, { id: 'm' }) : message) },
  },
  {
    says: 'approves what the list forbids',
    caught: 'live/host/L7.6-1',
    fault: { out: message => (isAnswer(message, 'black') ? answer(message, { approved: true }) : message) },
  },
  {
    says: 'approves scopes that nobody allowed',
    caught: 'live/host/L7.6-3',
    fault: { out: message => (isAnswer(message, 'outside') ? answer(message, { approved: true }) : message) },
  },
  {
    says: 'forgets the payload of an approval',
    caught: 'live/host/L7.5-1',
    fault: { out: message => (isAnswer(message, 'white') ? answer(message, { approved: true }) : message) },
  },
  {
    says: 'tells what is enabled and not what is disabled',
    caught: 'live/host/L6.4-1',
    fault: {
      out: message =>
        message['method'] === 'featureSets/update' ? { ...message, params: without(params(message), 'disabled') } : message,
    },
  },
  {
    says: 'tells live things to plain servers',
    caught: 'live/host/L3.3-1',
    fault: {
      out: (message, { send }) => {
        if (message['method'] === 'tools/call') send({ jsonrpc: '2.0', method: 'featureSets/update', params: { enabled: [] } })
        return message
      },
    },
  },
  {
    says: 'has another inference id after than before',
    caught: 'live/host/L10.5-1',
    fault: {
      out: message =>
        message['method'] === 'context/afterInference'
          ? { ...message, params: { ...params(message), inferenceId: 'another' } }
          : message,
    },
  },
  {
    says: 'does not say who will answer',
    caught: 'live/host/L10.1-1',
    fault: {
      out: message =>
        message['method'] === 'context/beforeInference' ? { ...message, params: without(params(message), 'model') } : message,
    },
  },
  {
    says: 'shows the answer that a hook has changed as it was',
    caught: 'live/host/L10.5-2',
    fault: {
      in: message => {
        const result = message['result'] as Params | undefined
        return result !== undefined && 'modifiedResponse' in result
          ? { ...message, result: without(result, 'modifiedResponse') }
          : message
      },
    },
  },
  {
    says: 'lets a disabled set change the answer',
    caught: 'live/host/L6.6-3',
    fault: {
      in: message => {
        const result = message['result'] as Params | undefined
        return result?.['featureSet'] === 'lab.off' ? { ...message, result: { ...result, featureSet: 'lab.hooks' } } : message
      },
    },
  },
  {
    says: 'counts chunks from one',
    caught: 'live/host/L11.4-1',
    fault: {
      out: message =>
        message['method'] === 'inference/chunk'
          ? { ...message, params: { ...params(message), index: Number(params(message)['index']) + 1 } }
          : message,
    },
  },
  {
    says: 'does not say what an inference cost',
    caught: 'live/host/L11.3-1',
    fault: {
      out: message =>
        isAnswer(message, 'plain') ? { ...message, result: without((message['result'] ?? {}) as Params, 'usage') } : message,
    },
  },
  {
    says: 'sends calls without the state that it keeps',
    caught: 'live/host/L8.4-1',
    fault: {
      out: message => (message['method'] === 'tools/call' ? { ...message, params: without(params(message), 'state') } : message),
    },
  },
  {
    says: 'moves the head though the server refused to go back',
    caught: 'live/host/L8.6-1',
    fault: {
      in: message => {
        const result = message['result'] as Params | undefined
        return result?.['reason'] === 'pruned' ? { ...message, result: { ...result, success: true } } : message
      },
    },
  },
]
