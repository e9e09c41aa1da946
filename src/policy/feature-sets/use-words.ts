/** What a feature set will be able to do, in the words of whoever is asked about it. The names of the wire say nothing to a user. */
import { type SetUse, setUses } from '../../features/live/dialects/messages.ts'

const words: Readonly<Record<SetUse, string>> = {
  'contextHooks.beforeInference.observe': 'reads your messages',
  'contextHooks.beforeInference.inject.system': 'may change the instructions that the model follows',
  'contextHooks.beforeInference.inject.beforeUser': 'may add text to the conversation',
  'contextHooks.beforeInference.inject.afterUser': 'may add text to the conversation',
  'contextHooks.afterInference': 'reads your messages and the answers, and may change answers',
  pushEvents: 'may start turns on its own',
  'channels.incoming': 'may start turns on its own, with messages that others write',
  'channels.publish': 'passes on to others what the agent publishes',
  'channels.streaming': 'sees what the agent writes to its channels while it is written, drafts too',
  channels: 'lists, opens and closes channels',
  inferenceRequest: 'may use the model at your cost',
  inferenceLifecycle: 'learns when turns begin and end, and what they cost',
  tools: 'offers tools to the model',
  state: 'keeps data of its own on this host',
  rollback: 'takes its own changes back when you undo a turn',
  scopes: 'asks you before it acts in places that you have not allowed',
  modelInfo: 'learns which model runs',
}

/** The graver ones first: nobody reads to the end. */
const order: readonly string[] = Object.keys(words)

/** As a clause: "reads your messages, may use the model at your cost". */
export function wordsForUses(uses: Iterable<string>): string {
  const known = [...new Set(uses)].filter((use): use is SetUse => (setUses as readonly string[]).includes(use))
  const said = known.sort((a, b) => order.indexOf(a) - order.indexOf(b)).map(use => words[use])
  return said.length === 0 ? 'can do nothing by itself' : [...new Set(said)].join(', ')
}
