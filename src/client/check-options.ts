/** What a program that no compiler helps may have misspelt in the options of `connect`. */
import { checkOptions, type OptionKind } from '../core/options.ts'
import { clientFeatures } from './features.ts'
import type { ConnectOptions } from './options.ts'

/** Those of the connection itself. */
const own: Readonly<Partial<Record<keyof ConnectOptions, OptionKind>>> = {
  info: 'object',
  revisions: 'list',
  relay: 'object',
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
  limits: 'object',
  log: 'any',
  onTrace: 'function',
  clock: 'object',
  signal: 'object',
}

const kinds: Readonly<Record<string, OptionKind>> = Object.assign({}, ...clientFeatures.map(({ options }) => options), own)

/** Throws where an option is unknown or of another kind. */
export function checkConnectOptions(options: unknown): void {
  checkOptions('connect', options, kinds)
}
