/** Models of providers through the AI SDK, and `modelFromEnvironment`. A provider's package is loaded on first use. */
import { problem } from '../../core/problem.ts'
import { redact } from '../../core/redact.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { type AiModelOptions, aiModel } from './ai.ts'
import type { Model } from './model.ts'
import { offline } from './offline.ts'

/** Options of `anthropic`. */
export interface AnthropicOptions extends Omit<AiModelOptions, 'id' | 'vendor'> {
  /** Default: ANTHROPIC_API_KEY. */
  readonly apiKey?: string
  /** Default: ANTHROPIC_BASE_URL, else Anthropic's own address. */
  readonly baseURL?: string
  /** The model id. */
  /** Default: ANTHROPIC_MODEL, else claude-sonnet-5. */
  readonly model?: string
}

/**
 * Anthropic's models. Throws where there is no API key.
 * @example const host = await createHost({ servers, model: anthropic({ model: 'claude-haiku-4-5' }) })
 */
export function anthropic(options: AnthropicOptions = {}): Model {
  const { env } = process
  const { apiKey = env['ANTHROPIC_API_KEY'], baseURL = env['ANTHROPIC_BASE_URL'] } = options
  const { model = env['ANTHROPIC_MODEL'] ?? 'claude-sonnet-5', contextWindow = 200_000, ...rest } = options
  if (apiKey === undefined || apiKey === '')
    throw problem('AUTHENTICATION_REQUIRED', 'No API key for Anthropic is set', {
      suggestion: 'Set ANTHROPIC_API_KEY, or pass anthropic({ apiKey })',
      actor: 'operator',
    })
  const open = async () => {
    const { createAnthropic } = await load('@ai-sdk/anthropic', () => import('@ai-sdk/anthropic'))
    return createAnthropic({ apiKey, fetch: providerFetch, ...(baseURL !== undefined && { baseURL }) })(model)
  }
  return aiModel(open, { capabilities: ['tools', 'vision'], ...rest, contextWindow, id: model, vendor: 'anthropic' })
}

/** Options of `openai`. */
export interface OpenAiOptions extends Omit<AiModelOptions, 'id' | 'vendor'> {
  /** Default: OPENAI_API_KEY. Servers of your own may need none. */
  readonly apiKey?: string
  /** Default: OPENAI_BASE_URL, else OpenAI's own address. */
  readonly baseURL?: string
  /** Default: OPENAI_MODEL, else gpt-5-mini. */
  readonly model?: string
}

/**
 * OpenAI's models, and all servers that speak its chat completions (Ollama, vLLM, LM Studio, gateways).
 * @example const host = await createHost({ servers, model: openai({ baseURL: 'http://127.0.0.1:11434/v1', model: 'qwen3' }) })
 */
export function openai(options: OpenAiOptions = {}): Model {
  const { env } = process
  const { apiKey = env['OPENAI_API_KEY'], baseURL = env['OPENAI_BASE_URL'] } = options
  const { model = env['OPENAI_MODEL'] ?? 'gpt-5-mini', ...rest } = options
  if ((apiKey === undefined || apiKey === '') && baseURL === undefined)
    throw problem('AUTHENTICATION_REQUIRED', 'No API key for OpenAI is set', {
      suggestion: 'Set OPENAI_API_KEY, or OPENAI_BASE_URL for your own server',
      actor: 'operator',
    })
  const open = async () => {
    const { createOpenAI } = await load('@ai-sdk/openai', () => import('@ai-sdk/openai'))
    // The SDK requires a key, but a self-hosted server accepts any.
    return createOpenAI({ apiKey: apiKey ?? 'none', fetch: providerFetch, ...(baseURL !== undefined && { baseURL }) }).chat(model)
  }
  return aiModel(open, { ...rest, id: model, vendor: 'openai' })
}

/** Anthropic with ANTHROPIC_API_KEY, OpenAI or a compatible server with OPENAI_API_KEY or OPENAI_BASE_URL, otherwise the offline assistant. */
export function modelFromEnvironment(env: Readonly<Record<string, string | undefined>> = process.env): Model {
  const told = (name: string): string | undefined => (env[name] === '' ? undefined : env[name])
  const key = told('ANTHROPIC_API_KEY')
  if (key !== undefined)
    return anthropic({ apiKey: key, ...given('model', told('ANTHROPIC_MODEL')), ...given('baseURL', told('ANTHROPIC_BASE_URL')) })
  const [other, baseURL] = [told('OPENAI_API_KEY'), told('OPENAI_BASE_URL')]
  if (other === undefined && baseURL === undefined) return offline()
  return openai({ ...given('apiKey', other), ...given('baseURL', baseURL), ...given('model', told('OPENAI_MODEL')) })
}

/** A member only where the value is given. */
function given<K extends string>(name: K, value: string | undefined): { readonly [P in K]?: string } {
  return (value === undefined ? {} : { [name]: value }) as { readonly [P in K]?: string }
}

/** Imports a provider's package; the error says how to install it. */
async function load<T>(name: string, imported: () => Promise<T>): Promise<T> {
  try {
    return await imported()
  } catch (cause) {
    const suggestion = `Install it: npm install ai ${name}`
    throw problem('UNSUPPORTED', `The package ${name} is not installed`, { suggestion, actor: 'operator', cause })
  }
}

/**
 * Refuses redirects: requests carry an API key and the whole conversation. `fetch` drops Authorization when a redirect leaves the origin,
 * but neither `x-api-key` nor the body.
 */
const providerFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, { ...init, redirect: 'manual' })
  const { status, headers } = response
  if (response.type !== 'opaqueredirect' && !(status >= 300 && status < 400)) return response
  await response.body?.cancel()
  const asked = URL.parse(input instanceof Request ? input.url : String(input))
  const where = `${clip(redact(headers.get('location') ?? 'elsewhere'))} (HTTP ${status})`
  const message = `The model provider at ${asked?.origin ?? 'this address'} redirects to ${where}. The request was not sent there, because it carries your API key`
  throw problem('SERVER_ERROR', message, { suggestion: 'Set baseURL to the final address if you trust it', actor: 'operator' })
}
