/** Anthropic's models, by the AI SDK. The provider's package is loaded when a model is first asked. */
import { problem } from '../../core/problem.ts'
import { type AiModelOptions, aiModel } from './ai.ts'
import type { Model } from './model.ts'
import { providerFetch } from './provider-fetch.ts'

export interface AnthropicOptions extends Omit<AiModelOptions, 'id' | 'vendor'> {
  /** Default: ANTHROPIC_API_KEY. */
  readonly apiKey?: string
  /** Default: ANTHROPIC_BASE_URL, else Anthropic's own address. */
  readonly baseURL?: string
  /** Default: ANTHROPIC_MODEL, else claude-sonnet-5. */
  readonly model?: string
}

/** @example const host = await createHost({ servers, model: anthropic({ model: 'claude-haiku-4-5' }) }) */
export function anthropic(options: AnthropicOptions = {}): Model {
  const { env } = process
  const { apiKey = env['ANTHROPIC_API_KEY'], baseURL = env['ANTHROPIC_BASE_URL'] } = options
  const { model = env['ANTHROPIC_MODEL'] ?? 'claude-sonnet-5', contextWindow = 200_000, ...rest } = options
  if (apiKey === undefined || apiKey === '')
    throw problem('AUTHENTICATION_REQUIRED', 'There is no API key for Anthropic', {
      suggestion: 'Set ANTHROPIC_API_KEY, or give anthropic({ apiKey })',
      actor: 'operator',
    })
  const open = async () => {
    const { createAnthropic } = await load()
    return createAnthropic({ apiKey, fetch: providerFetch, ...(baseURL !== undefined && { baseURL }) })(model)
  }
  return aiModel(open, { capabilities: ['tools', 'vision'], ...rest, contextWindow, id: model, vendor: 'anthropic' })
}

async function load() {
  try {
    return await import('@ai-sdk/anthropic')
  } catch (cause) {
    const suggestion = 'npm install ai @ai-sdk/anthropic'
    throw problem('UNSUPPORTED', 'The package @ai-sdk/anthropic is not installed', { suggestion, actor: 'operator', cause })
  }
}
