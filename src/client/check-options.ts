/** What a program that no compiler helps may have misspelt in the options of `connect`. */
import { checkOptions, type KindsOf } from '../core/options.ts'
import type { ConnectOptions } from './options.ts'

const kinds: KindsOf<ConnectOptions> = {
  info: 'object',
  revisions: 'list',
  onElicit: 'function',
  onQuestionRefused: 'function',
  onConfirm: 'function',
  onCost: 'function',
  costLimit: 'number',
  intent: 'boolean',
  onSuggestion: 'function',
  elicitUrl: 'boolean',
  onSample: 'function',
  sampleTools: 'boolean',
  sampleContext: 'string',
  roots: 'any',
  relay: 'object',
  onLog: 'function',
  logLevel: 'string',
  onElicitationComplete: 'function',
  profile: 'any',
  extensions: 'object',
  auth: 'any',
  headers: 'object',
  wrap: 'function',
  fetch: 'function',
  timeout: 'any',
  startTimeout: 'any',
  probeTimeout: 'any',
  live: 'object',
  validateArguments: 'boolean',
  retry: 'any',
  onProblem: 'function',
  onAuthRequired: 'function',
  healthCheck: 'any',
  completionCache: 'any',
  completionDelay: 'any',
  limits: 'object',
  log: 'any',
  onTrace: 'function',
  clock: 'object',
  signal: 'object',
}

export function checkConnectOptions(options: unknown): void {
  checkOptions('connect', options, kinds)
}
