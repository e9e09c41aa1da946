/** What a program that no compiler helps may have misspelt in the options of `createHost`. */
import { checkOptions, type KindsOf } from '../core/options.ts'
import { clip } from '../jsonrpc/limits.ts'
import { isRecord } from '../jsonrpc/message.ts'
import type { HostOptions } from './options.ts'

const kinds: KindsOf<HostOptions> = {
  config: 'string',
  onConfig: 'function',
  env: 'object',
  servers: 'object',
  store: 'any',
  pins: 'object',
  audit: 'object',
  startMs: 'number',
  onServer: 'function',
  onConfigFault: 'function',
  onTrouble: 'function',
  onNote: 'function',
  onStderr: 'function',
  clock: 'object',
  random: 'function',
  onSampleReview: 'function',
  onElicit: 'function',
  roots: 'list',
  routes: 'object',
  model: 'any',
  system: 'string',
  policy: 'object',
  onApproval: 'function',
  remember: 'any',
  patience: 'any',
  budgets: 'list',
  onBudget: 'function',
  extract: 'object',
  inbox: 'object',
  ambient: 'string',
  conversationOf: 'function',
  hooks: 'object',
  limits: 'object',
  onTurn: 'function',
  record: 'string',
  newId: 'function',
}

export function checkHostOptions(options: HostOptions): void {
  checkOptions('createHost', options, kinds)
  const { model = [] } = options
  for (const one of Array.isArray(model) ? model : [model])
    if (!isRecord(one) || typeof one['generate'] !== 'function') throw new TypeError(`createHost: model is ${noModel(one)}`)
}

function noModel(given: unknown): string {
  const shown = typeof given === 'string' ? `"${clip(given)}"` : 'no model'
  const named = typeof given === 'string' ? `'${clip(given)}'` : "'…'"
  return `${shown}; give anthropic({ model: ${named} }), openai({ model: ${named} }), or what has info and generate()`
}
