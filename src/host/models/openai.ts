/**
 * OpenAI's models, and all servers that speak its chat completions (Ollama, vLLM, LM Studio, gateways), by the AI SDK. The provider's
 * package is loaded when a model is first asked.
 */
import { problem } from '../../core/problem.ts'
import { type AiModelOptions, aiModel } from './ai.ts'
import type { Model } from './model.ts'
import { providerFetch } from './provider-fetch.ts'

export interface OpenAiOptions extends Omit<AiModelOptions, 'id' | 'vendor'> {
  /** Default: OPENAI_API_KEY. Servers of your own may need none. */
  readonly apiKey?: string
  /** Default: OPENAI_BASE_URL, else OpenAI's own address. */
  readonly baseURL?: string
  /** Default: OPENAI_MODEL, else gpt-5-mini. */
  readonly model?: string
}

/** @example const host = await createHost({ servers, model: openai({ baseURL: 'http://127.0.0.1:11434/v1', model: 'qwen3' }) }) */
export function openai(options: OpenAiOptions = {}): Model {
  const { env } = process
  const { apiKey = env['OPENAI_API_KEY'], baseURL = env['OPENAI_BASE_URL'] } = options
  const { model = env['OPENAI_MODEL'] ?? 'gpt-5-mini', ...rest } = options
  if ((apiKey === undefined || apiKey === '') && baseURL === undefined)
    throw problem('AUTHENTICATION_REQUIRED', 'There is no API key for OpenAI', {
      suggestion: 'Set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own',
      actor: 'operator',
    })
  const open = async () => {
    const { createOpenAI } = await load()
    // A server of one's own takes any key, but the provider wants one.
    return createOpenAI({ apiKey: apiKey ?? 'none', fetch: providerFetch, ...(baseURL !== undefined && { baseURL }) }).chat(model)
  }
  return aiModel(open, { ...rest, id: model, vendor: 'openai' })
}

async function load() {
  try {
    return await import('@ai-sdk/openai')
  } catch (cause) {
    const suggestion = 'npm install ai @ai-sdk/openai'
    throw problem('UNSUPPORTED', 'The package @ai-sdk/openai is not installed', { suggestion, actor: 'operator', cause })
  }
}
