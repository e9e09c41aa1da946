/** The dialects of MCP Live: whatever a server announces or sends, it is read without a throw, and what is told back is one thing to all. */

import { readAnnounced } from '../../../src/features/live/dialects/announced.ts'
import {
  readBefore,
  readContent,
  readIncoming,
  readInference,
  readLiveState,
  readPush,
  readRollback,
} from '../../../src/features/live/dialects/messages.ts'
import { readSelectionReply, writeSelection } from '../../../src/features/live/dialects/selection.ts'
import { requestInference } from '../../../src/features/live/inference/messages.ts'
import { pushEvent, type WirePush } from '../../../src/features/live/push-events/messages.ts'
import { isRecord, type Params } from '../../../src/jsonrpc/message.ts'
import { mutated } from '../mutate.ts'
import { demand, target } from '../target.ts'

const content = [
  { type: 'text', text: 'a' },
  { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } },
]
const right = {
  mcpl: {
    version: '0.5',
    pushEvents: true,
    contextHooks: { beforeInference: { observe: true, inject: { system: true } }, afterInference: { blocking: false } },
    inferenceRequest: { streaming: true },
    channels: true,
    featureSets: { 'a.b': { description: 'A', uses: ['pushEvents'] }, 'a.c': { description: 'B', uses: [], rollback: true } },
  },
  push: {
    featureSet: 'a.b',
    eventId: 'e',
    timestamp: '2026-01-01T00:00:00Z',
    origin: { silent: true },
    tags: ['chat:dm'],
    payload: { content },
  },
  message: { channelId: 'c', messageId: 'm', author: { id: 'u' }, timestamp: '2026-01-01T00:00:00Z', content },
  before: { featureSet: 'a.b', contextInjections: [{ namespace: 'n', position: 'system', content }] },
  inference: { featureSet: 'a.b', stream: true, messages: [{ role: 'user', content }], preferences: { maxTokens: 1 } },
  result: { state: { checkpoint: 'c', parent: null, data: {}, patch: [] }, success: true, checkpoint: 'c' },
  receipt: { accepted: true, unavailableFeatures: [{ featureSet: 'a', missingCapabilities: ['x'], effect: 'disabled' }] },
}
type Input = Readonly<Record<keyof typeof right, unknown>>

export const live = target<Input>({
  name: 'live',
  make: source => Object.fromEntries(Object.entries(right).map(([name, one]) => [name, mutated(source, one)])) as Input,
  check: ({ mcpl, push, message, before, inference, result, receipt }) => {
    const announced = readAnnounced({ tools: {}, experimental: { mcpl } })
    if (announced !== undefined) {
      const told = writeSelection(announced, { enabled: ['a.*'], disabled: ['a.c'], canEnable: () => true })
      const { enabled = [], disabled = [], effectiveCapabilities = [] } = told.byRequest
      demand(new Set([...enabled, ...disabled]).size === enabled.length + disabled.length, () => 'a set in both lists')
      demand(![...enabled, ...disabled, ...effectiveCapabilities].some(one => one.includes('*')), () => 'a pattern goes out')
      demand(!enabled.includes('a.c'), () => 'disabled does not beat enabled')
    }
    if (pushEvent.params.check(push) === undefined) readPush(push as WirePush)
    if (isRecord(message)) readIncoming(message, 'a.b', 0)
    if (requestInference.params.check(inference) === undefined) readInference(inference as Params)
    if (isRecord(result)) readLiveState(result)
    readBefore(before)
    readRollback(result, 'c')
    readSelectionReply(receipt)
    readContent(isRecord(message) ? message['content'] : message)
  },
})
